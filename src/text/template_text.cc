#include "text/template_text.h"

#include <string.h>

#include <algorithm>

namespace whippet::jinja {
namespace {

bool contains_char(std::string_view set, std::string_view character) {
  if (character.size() == 1) return set.find(character.front()) != std::string_view::npos;
  return find_text(set, character) != std::string_view::npos;
}

}  // namespace

size_t char_before(std::string_view text, size_t end) {
  for (size_t size = 2; size <= 4 && size <= end; ++size) {
    if ((static_cast<unsigned char>(text[end - size + 1]) & 0xC0) != 0x80) break;
    const Utf8Character found = char_at(text, end - size);
    if (found.code != kInvalidCharacter && found.size == size) return end - size;
  }
  return end - 1;
}

int64_t count_chars(std::string_view text) {
  size_t at = find_non_ascii(text, 0);
  auto count = static_cast<int64_t>(at);
  for (; at < text.size(); at += char_at(text, at).size) ++count;
  return count;
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_line_end(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

Range strip_range(std::string_view text, const std::string_view* characters, bool left, bool right) {
  size_t begin = 0;
  size_t end = text.size();
  const auto stripped = [&](size_t at, size_t size) {
    if (characters != nullptr) return contains_char(*characters, text.substr(at, size));
    return is_space(char_at(text, at).code);
  };
  while (left && begin < end) {
    const size_t size = char_at(text, begin).size;
    if (!stripped(begin, size)) break;
    begin += size;
  }
  while (right && begin < end) {
    const size_t at = std::max(begin, char_before(text, end));
    if (!stripped(at, end - at)) break;
    end = at;
  }
  return {begin, end};
}

size_t find_text(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // memmem is linear in the worst case; string_view::find is not.
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t find_last_text(std::string_view text, std::string_view needle) {
  const std::string backwards(text.rbegin(), text.rend());
  const std::string wanted(needle.rbegin(), needle.rend());
  const size_t found = find_text(backwards, wanted);
  return found == std::string_view::npos ? found : text.size() - found - needle.size();
}

Result<int64_t> length_of(Runtime& runtime, const String& string) {
  if (string.length < 0) {
    WH_TRY(runtime.scan(string.text.size()));
    string.length = count_chars(string.text);
  }
  return string.length;
}

size_t offset_of(const String& string, int64_t index) {
  if (string.length == static_cast<int64_t>(string.text.size())) return static_cast<size_t>(index);
  size_t at = 0;
  for (; index > 0 && at < string.text.size(); --index) at += char_at(string.text, at).size;
  return at;
}

Result<Value> slice(Runtime& runtime, const String& string, size_t begin, size_t end) {
  if (begin == 0 && end == string.text.size()) return Value(&string);
  String part{string.text.substr(begin, end - begin), {}};
  const auto first = std::upper_bound(string.marks.begin(), string.marks.end(), begin,
                                      [](size_t at, const TextSpan& mark) { return at < mark.end; });
  const auto last = std::lower_bound(first, string.marks.end(), end,
                                     [](const TextSpan& mark, size_t at) { return mark.begin < at; });
  const auto count = static_cast<size_t>(last - first);
  if (count > 0) {
    WH_TRY(runtime.charge(count * sizeof(TextSpan)));
    const std::span<TextSpan> marks = runtime.array<TextSpan>(count);
    for (size_t i = 0; i < count; ++i) {
      marks[i] = {std::max(first[i].begin, begin) - begin, std::min(first[i].end, end) - begin};
    }
    part.marks = marks;
  }
  return Value(runtime.make(part));
}

Status TextBuilder::append(std::string_view text, bool user) {
  if (text.empty()) return {};
  const size_t begin = size();
  if (text.size() > runtime_->limits().max_output - begin) {
    return make_error(Code::kResourceExhausted, "a text grew beyond {} bytes", runtime_->limits().max_output);
  }
  WH_TRY(runtime_->charge(text.size()));
  text_.text += text;
  if (!user) return {};
  if (!text_.user_spans.empty() && text_.user_spans.back().end == begin) {
    text_.user_spans.back().end = size();
    return {};
  }
  text_.user_spans.push_back({begin, size()});
  return runtime_->charge(sizeof(TextSpan));
}

Status TextBuilder::append(const String& string, size_t begin, size_t end) {
  if (begin == end) return {};
  auto mark = std::upper_bound(string.marks.begin(), string.marks.end(), begin,
                               [](size_t at, const TextSpan& m) { return at < m.end; });
  size_t at = begin;
  for (; mark != string.marks.end() && mark->begin < end; ++mark) {
    const size_t from = std::max(mark->begin, at);
    const size_t to = std::min(mark->end, end);
    WH_TRY(append(string.text.substr(at, from - at), false));
    WH_TRY(append(string.text.substr(from, to - from), true));
    at = to;
  }
  return append(string.text.substr(at, end - at), false);
}

Result<Value> TextBuilder::finish() {
  const std::span<char> text = runtime_->array<char>(text_.text.size());
  std::copy(text_.text.begin(), text_.text.end(), text.begin());
  const std::span<TextSpan> marks = runtime_->array<TextSpan>(text_.user_spans.size());
  std::copy(text_.user_spans.begin(), text_.user_spans.end(), marks.begin());
  return Value(runtime_->make(String{{text.data(), text.size()}, marks}));
}

}  // namespace whippet::jinja
