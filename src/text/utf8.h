// UTF-8, one character at a time: for the splitters, the normaliser and the stream decoder.
// Ill-formed input follows the Unicode standard's rule of maximal subparts (chapter 3.9, table 3-8).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace whippet {

inline constexpr char32_t kInvalidCharacter = 0xFFFFFFFF;

struct Utf8Character {
  char32_t code;  // kInvalidCharacter when the bytes are ill-formed
  uint32_t size;  // bytes to step over: the character, or the maximal subpart of an ill-formed one
};

// The character of two bytes or more at `text`, text < end. Call decode_utf8.
Utf8Character decode_utf8_tail(const char* text, const char* end);

// The character at `text`, text < end.
inline Utf8Character decode_utf8(const char* text, const char* end) {
  const auto first = static_cast<unsigned char>(*text);
  if (first < 0x80) return {first, 1};
  return decode_utf8_tail(text, end);
}

// code: a scalar value (below 0x110000, no surrogate).
void append_utf8(std::string& out, char32_t code);

// Appends the bytes, with every maximal ill-formed subpart as U+FFFD.
void append_repaired_utf8(std::string& out, std::string_view bytes);

// The text for an error message: in quotes, well-formed, without control characters, at most 64 bytes of it.
std::string quote_text(std::string_view text);

// How many bytes at the end of `bytes` (0 to 3) begin a character whose rest is missing but may still come.
size_t unfinished_utf8_suffix(std::string_view bytes);

// The first byte of 0x80 or more at or after `begin`; the size of the text when there is none.
size_t find_non_ascii(std::string_view text, size_t begin);

}  // namespace whippet
