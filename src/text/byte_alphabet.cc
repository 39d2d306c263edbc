#include "text/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace whippet {
namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr int kNumShifted = 68;                 // bytes that do not stand for themselves
constexpr int kNumCodes = 0x100 + kNumShifted;  // code points 0 to 0x143

struct Alphabet {
  std::array<uint16_t, 256> code_of_byte{};
  std::array<int16_t, kNumCodes> byte_of_code{};  // -1: outside the alphabet

  constexpr Alphabet() {
    for (auto& byte : byte_of_code) byte = -1;
    int shifted = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const int code = stands_for_itself(byte) ? byte : shifted++;
      code_of_byte[static_cast<size_t>(byte)] = static_cast<uint16_t>(code);
      byte_of_code[static_cast<size_t>(code)] = static_cast<int16_t>(byte);
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  const char* const end = spelling.data() + spelling.size();
  for (const char* at = spelling.data(); at != end;) {
    const Utf8Character character = decode_utf8(at, end);
    if (character.code >= kNumCodes || kAlphabet.byte_of_code[character.code] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte_of_code[character.code]);
    at += character.size;
  }
  return bytes;
}

std::string spelling_of_byte(unsigned char byte) {
  std::string spelling;
  append_utf8(spelling, kAlphabet.code_of_byte[byte]);
  return spelling;
}

}  // namespace whippet
