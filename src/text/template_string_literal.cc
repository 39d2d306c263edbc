#include "text/template_string_literal.h"

#include <charconv>

#include "text/template_text.h"

namespace whippet::jinja {
namespace {

// Exactly `digits` hexadecimal digits.
Result<char32_t> hexadecimal(std::string_view text, size_t digits) {
  uint32_t code = 0;
  const char* end = text.data() + std::min(digits, text.size());
  const auto parsed = std::from_chars(text.data(), end, code, 16);
  if (text.size() < digits || parsed.ec != std::errc() || parsed.ptr != end || code > 0x10FFFF) {
    return make_error(Code::kInvalidArgument, "a string has an escape without its {} hexadecimal digits",
                      digits);
  }
  return char32_t{code};
}

bool is_surrogate(char32_t code, char32_t first) { return code >= first && code < first + 0x400; }

}  // namespace

Result<std::string> unescape(std::string_view literal) {
  static constexpr std::string_view kLetters = "\\'\"abfnrtv";
  static constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  std::string text;
  for (size_t at = 0; at < literal.size(); ++at) {
    if (literal[at] != '\\' || at + 1 == literal.size()) {
      text += literal[at];
      continue;
    }
    const char escape = literal[++at];
    if (const size_t letter = kLetters.find(escape); letter != std::string_view::npos) {
      text += kMeanings[letter];
    } else if (escape >= '0' && escape <= '7') {
      char32_t code = 0;
      size_t end = at;
      for (; end < literal.size() && end < at + 3 && literal[end] >= '0' && literal[end] <= '7'; ++end) {
        code = code * 8 + static_cast<char32_t>(literal[end] - '0');
      }
      append_utf8(text, code);
      at = end - 1;
    } else if (escape == 'x' || escape == 'u' || escape == 'U') {
      const size_t digits = escape == 'x' ? 2 : (escape == 'u' ? 4 : 8);
      WH_ASSIGN(char32_t code, hexadecimal(literal.substr(at + 1), digits));
      at += digits;
      if (is_surrogate(code, 0xD800) && literal.substr(at + 1).starts_with("\\u")) {
        WH_ASSIGN(const char32_t low, hexadecimal(literal.substr(at + 3), 4));
        if (is_surrogate(low, 0xDC00)) {
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
          at += 6;
        }
      }
      if (code >= 0xD800 && code < 0xE000) {
        return make_error(Code::kInvalidArgument, "a string has half a surrogate pair");
      }
      append_utf8(text, code);
    } else if (escape == 'N') {
      return make_error(Code::kUnsupported, "\\N{{...}} in a string is not supported");
    } else if (escape != '\n') {  // a line end after a backslash is none
      text += '\\';
      text += escape;
    }
  }
  return text;
}

}  // namespace whippet::jinja
