// Text as Python sees it, characters over UTF-8, and text that keeps what users wrote while it is cut and
// joined. Bytes that are no UTF-8 pass through unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "text/marked_text.h"
#include "text/template_runtime.h"
#include "text/template_value.h"
#include "text/utf8.h"

namespace whippet::jinja {

// The character that begins at byte `at`, at < text.size(); kInvalidCharacter for bytes that are none.
inline Utf8Character char_at(std::string_view text, size_t at) {
  return decode_utf8(text.data() + at, text.data() + text.size());
}
// The byte where the character that ends at byte `end` begins, end > 0.
size_t char_before(std::string_view text, size_t end);
int64_t count_chars(std::string_view text);
bool is_space(char32_t code);

// [begin, end) in bytes.
using Range = std::pair<size_t, size_t>;
bool is_line_end(char32_t code);
// Calls line(Range) -> Status for every line without its end, as Python's splitlines.
template <class F>
Status for_each_line(std::string_view text, F line) {
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character c = char_at(text, at);
    const size_t end = at;
    at += c.size;
    if (!is_line_end(c.code)) continue;
    if (c.code == '\r' && at < text.size() && text[at] == '\n') ++at;
    WH_TRY(line(Range(begin, end)));
    begin = at;
  }
  if (begin < text.size()) WH_TRY(line(Range(begin, text.size())));
  return {};
}
// What remains when characters of the set (white space: null) are taken off the ends.
Range strip_range(std::string_view text, const std::string_view* characters, bool left, bool right);
// The first or the last place of needle in text at or after `from`; npos when there is none. Linear time.
size_t find_text(std::string_view text, std::string_view needle, size_t from = 0);
size_t find_last_text(std::string_view text, std::string_view needle);

Result<int64_t> length_of(Runtime& runtime, const String& string);
// The byte offset of a character index, which is at most the length.
size_t offset_of(const String& string, int64_t index);
Result<Value> slice(Runtime& runtime, const String& string, size_t begin, size_t end);
inline Result<Value> slice(Runtime& runtime, const String& string, Range range) {
  return slice(runtime, string, range.first, range.second);
}

// Calls part(std::string_view, bool user) -> Status for the pieces of a string that users wrote and did not.
template <class F>
Status for_each_part(const String& string, F part) {
  size_t at = 0;
  for (const TextSpan& mark : string.marks) {
    if (at < mark.begin) WH_TRY(part(string.text.substr(at, mark.begin - at), false));
    WH_TRY(part(string.text.substr(mark.begin, mark.end - mark.begin), true));
    at = mark.end;
  }
  if (at < string.text.size()) WH_TRY(part(string.text.substr(at), false));
  return {};
}

// Text under construction: counted, bounded by max_output, marked.
class TextBuilder {
 public:
  explicit TextBuilder(Runtime& runtime) : runtime_(&runtime) {}

  Status append(std::string_view text, bool user = false);
  Status append(const String& string) { return append(string, 0, string.text.size()); }
  Status append(const String& string, size_t begin, size_t end);
  size_t size() const { return text_.text.size(); }
  std::string_view text() const { return text_.text; }

  Result<Value> finish();  // as a string of the runtime
  MarkedText take() { return std::move(text_); }

 private:
  Runtime* runtime_;
  MarkedText text_;
};

}  // namespace whippet::jinja
