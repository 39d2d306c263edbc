#include "text/utf8.h"

#include <algorithm>
#include <cstring>

namespace whippet {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// What a lead byte promises: the length, and the range of the second byte (which rules out overlong forms,
// surrogates and values beyond 0x10FFFF). length 0: no lead byte.
struct Lead {
  uint32_t length;
  unsigned char second_low, second_high;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// The bytes of `text` that can stand in a character of this lead; lead.length when it is whole.
uint32_t well_formed_prefix(Lead lead, const char* text, const char* end) {
  const auto limit = static_cast<uint32_t>(std::min<ptrdiff_t>(lead.length, end - text));
  uint32_t size = 1;
  while (size < limit) {
    const auto byte = static_cast<unsigned char>(text[size]);
    const unsigned char low = size == 1 ? lead.second_low : 0x80;
    const unsigned char high = size == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) break;
    ++size;
  }
  return size;
}

}  // namespace

Utf8Character decode_utf8_tail(const char* text, const char* end) {
  const auto first = static_cast<unsigned char>(*text);
  const Lead lead = lead_of(first);
  if (lead.length == 0) return {kInvalidCharacter, 1};
  const uint32_t size = well_formed_prefix(lead, text, end);
  if (size < lead.length) return {kInvalidCharacter, size};
  char32_t code = first & (0x7F >> lead.length);
  for (uint32_t i = 1; i < size; ++i) code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3F);
  return {code, size};
}

void append_utf8(std::string& out, char32_t code) {
  const auto trail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += trail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += trail(6);
    out += trail(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += trail(12);
    out += trail(6);
    out += trail(0);
  }
}

void append_repaired_utf8(std::string& out, std::string_view bytes) {
  const char* const end = bytes.data() + bytes.size();
  size_t copied = 0;
  for (size_t at = find_non_ascii(bytes, 0); at < bytes.size(); at = find_non_ascii(bytes, at)) {
    const Utf8Character character = decode_utf8(bytes.data() + at, end);
    if (character.code == kInvalidCharacter) {
      out.append(bytes.substr(copied, at - copied)).append(kReplacement);
      copied = at + character.size;
    }
    at += character.size;
  }
  out.append(bytes.substr(copied));
}

std::string quote_text(std::string_view text) {
  constexpr size_t kLongest = 64;
  std::string out = "\"";
  append_repaired_utf8(out, text.substr(0, kLongest));
  for (char& byte : out) {
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F) byte = '?';
  }
  return out + (text.size() > kLongest ? "...\"" : "\"");
}

size_t unfinished_utf8_suffix(std::string_view bytes) {
  const char* const end = bytes.data() + bytes.size();
  for (size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const auto byte = static_cast<unsigned char>(end[-static_cast<ptrdiff_t>(back)]);
    if ((byte & 0xC0) == 0x80) continue;
    const Lead lead = lead_of(byte);
    return lead.length > back && well_formed_prefix(lead, end - back, end) == back ? back : 0;
  }
  return 0;
}

size_t find_non_ascii(std::string_view text, size_t begin) {
  size_t at = begin;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080ULL) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

}  // namespace whippet
