#include "openai/json_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <iterator>

namespace whippet::openai {
namespace {

enum : uint8_t { kPlain, kEscape, kMaybe };  // kMaybe: may begin U+0085, U+2028 or U+2029

constexpr std::array<uint8_t, 256> kKinds = [] {
  std::array<uint8_t, 256> kinds = {};
  for (size_t byte = 0; byte < 0x20; ++byte) kinds[byte] = kEscape;
  kinds['"'] = kinds['\\'] = kinds[0x7F] = kEscape;
  kinds[0xC2] = kinds[0xE2] = kMaybe;
  return kinds;
}();

// Bytes at `at` that are a line separator, or 0.
size_t separator_at(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("\xC2\x85")) return 2;
  if (rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9")) return 3;
  return 0;
}

void append_escape(std::string& out, std::string_view character) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto last = static_cast<unsigned char>(character.back());
  if (character.size() > 1) {
    out += character.size() == 2 ? "\\u0085" : last == 0xA8 ? "\\u2028" : "\\u2029";
    return;
  }
  switch (last) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      out += "\\u00";
      out += kHex[last >> 4];
      out += kHex[last & 15];
  }
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
  size_t begin = 0;  // of what has not been appended
  for (size_t at = 0; at < text.size();) {
    const uint8_t kind = kKinds[static_cast<unsigned char>(text[at])];
    const size_t length = kind == kPlain ? 0 : kind == kEscape ? 1 : separator_at(text, at);
    if (length == 0) {
      ++at;
      continue;
    }
    out.append(text, begin, at - begin);
    append_escape(out, text.substr(at, length));
    begin = at += length;
  }
  out.append(text, begin);
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  append_json_escaped(out, text);
  out += '"';
}

void append_number(std::string& out, int64_t value) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), static_cast<size_t>(end - digits.data()));
}

void append_logprob(std::string& out, float value) {
  constexpr float kLeast = -9999;
  if (!(value >= kLeast)) value = kLeast;
  fmt::format_to(std::back_inserter(out), "{}", std::fmin(value, 0.0f));
}

}  // namespace whippet::openai
