#include "text/template_text_ops.h"

#include <utf8proc.h>

#include <string>

#include "text/template_format.h"

namespace whippet::jinja {
namespace {

void append_upper(std::string& text, char32_t code) {
  if (code == U'ß') {
    text += "SS";
  } else {
    append_utf8(text, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))));
  }
}

void append_title(std::string& text, char32_t code) {
  if (code == U'ß') {
    text += "Ss";
  } else {
    append_utf8(text, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code))));
  }
}

void append_lower(std::string& text, char32_t code) {
  append_utf8(text, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
}

// Every character as map(std::string&, char32_t) writes it, with the mark that it had.
template <class F>
Result<Value> map_chars(Runtime& runtime, const String& string, F map) {
  WH_TRY(runtime.scan(string.text.size()));
  TextBuilder out(runtime);
  const auto map_part = [&](std::string_view part, bool user) {
    std::string mapped;
    for (size_t at = 0, size = 0; at < part.size(); at += size) {
      const Utf8Character c = char_at(part, at);
      size = c.size;
      if (c.code == kInvalidCharacter) {
        mapped += part.substr(at, size);
      } else {
        map(mapped, c.code);
      }
    }
    return out.append(mapped, user);
  };
  WH_TRY(for_each_part(string, map_part));
  return out.finish();
}

bool has_case(char32_t code, utf8proc_category_t wanted) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == wanted;
}

bool is_cased(char32_t code) {
  return has_case(code, UTF8PROC_CATEGORY_LU) || has_case(code, UTF8PROC_CATEGORY_LL) ||
         has_case(code, UTF8PROC_CATEGORY_LT);
}

bool all_cased_are(std::string_view text, utf8proc_category_t wanted) {
  bool some = false;
  for (size_t at = 0, size = 0; at < text.size(); at += size) {
    const Utf8Character c = char_at(text, at);
    size = c.size;
    if (c.code == kInvalidCharacter || !is_cased(c.code)) continue;
    if (!has_case(c.code, wanted)) return false;
    some = true;
  }
  return some;
}

size_t skip_spaces(std::string_view text, size_t at, bool spaces) {
  while (at < text.size()) {
    const Utf8Character c = char_at(text, at);
    if (is_space(c.code) != spaces) break;
    at += c.size;
  }
  return at;
}

// Each of these calls part(Range) -> Status for the pieces, the last two from the right.
template <class F>
Status split_at_spaces(std::string_view text, int64_t max_splits, F part) {
  for (size_t at = skip_spaces(text, 0, true); at < text.size(); at = skip_spaces(text, at, true)) {
    const size_t end = max_splits-- == 0 ? text.size() : skip_spaces(text, at, false);
    WH_TRY(part(Range(at, end)));
    at = end;
  }
  return {};
}

template <class F>
Status split_at(std::string_view text, std::string_view separator, int64_t max_splits, F part) {
  size_t begin = 0;
  while (max_splits-- != 0) {
    const size_t found = find_text(text, separator, begin);
    if (found == std::string_view::npos) break;
    WH_TRY(part(Range(begin, found)));
    begin = found + separator.size();
  }
  return part(Range(begin, text.size()));
}

template <class F>
Status split_at_spaces_right(std::string_view text, int64_t max_splits, F part) {
  size_t end = strip_range(text, nullptr, false, true).second;
  while (end > 0) {
    size_t begin = max_splits-- == 0 ? 0 : end;
    while (begin > 0) {
      const size_t before = char_before(text, begin);
      if (is_space(char_at(text, before).code)) break;
      begin = before;
    }
    WH_TRY(part(Range(begin, end)));
    end = strip_range(text.substr(0, begin), nullptr, false, true).second;
  }
  return {};
}

template <class F>
Status split_at_right(std::string_view text, std::string_view separator, int64_t max_splits, F part) {
  const std::string backwards(text.rbegin(), text.rend());
  const std::string wanted(separator.rbegin(), separator.rend());
  return split_at(backwards, wanted, max_splits, [&](Range range) {
    return part(Range(text.size() - range.second, text.size() - range.first));
  });
}

Error empty_separator() {
  return make_error(Code::kInvalidArgument, "split() needs a separator that is not empty");
}

}  // namespace

Result<Value> upper(Runtime& runtime, const String& string) {
  return map_chars(runtime, string, append_upper);
}
Result<Value> lower(Runtime& runtime, const String& string) {
  return map_chars(runtime, string, append_lower);
}

Result<Value> capitalize(Runtime& runtime, const String& string) {
  return map_chars(runtime, string, [first = true](std::string& out, char32_t code) mutable {
    first ? append_title(out, code) : append_lower(out, code);
    first = false;
  });
}

Result<Value> title(Runtime& runtime, const String& string) {
  return map_chars(runtime, string, [inside = false](std::string& out, char32_t code) mutable {
    inside ? append_lower(out, code) : append_title(out, code);
    inside = is_cased(code);
  });
}

bool is_letter(char32_t code) {
  return is_cased(code) || has_case(code, UTF8PROC_CATEGORY_LM) || has_case(code, UTF8PROC_CATEGORY_LO);
}
bool is_upper(std::string_view text) { return all_cased_are(text, UTF8PROC_CATEGORY_LU); }
bool is_lower(std::string_view text) { return all_cased_are(text, UTF8PROC_CATEGORY_LL); }

Result<Value> replace(Runtime& runtime, const String& string, const String& from, const String& to,
                      int64_t count) {
  WH_TRY(runtime.scan(string.text.size()));
  const std::string_view text = string.text;
  TextBuilder out(runtime);
  size_t done = 0;
  for (size_t at = 0; count != 0; --count) {
    at = find_text(text, from.text, at);
    if (at == std::string_view::npos) break;
    WH_TRY(out.append(string, done, at));
    WH_TRY(out.append(to));
    WH_TRY(runtime.step());
    done = at + from.text.size();
    // An empty text is found before every character and at the end.
    if (from.text.empty() && at == text.size()) break;
    at = from.text.empty() ? at + char_at(text, at).size : done;
  }
  WH_TRY(out.append(string, done, text.size()));
  return out.finish();
}

Result<Value> split(Runtime& runtime, const String& string, const String* separator, int64_t max_splits) {
  WH_TRY(runtime.scan(string.text.size()));
  if (separator != nullptr && separator->text.empty()) return empty_separator();
  ListBuilder parts(runtime);
  const auto add = [&](Range range) -> Status {
    WH_ASSIGN(const Value part, slice(runtime, string, range));
    return parts.add(part);
  };
  WH_TRY(separator == nullptr ? split_at_spaces(string.text, max_splits, add)
                              : split_at(string.text, separator->text, max_splits, add));
  return parts.finish();
}

Result<Value> split_right(Runtime& runtime, const String& string, const String* separator,
                          int64_t max_splits) {
  WH_TRY(runtime.scan(string.text.size()));
  if (separator != nullptr && separator->text.empty()) return empty_separator();
  ListBuilder parts(runtime);
  const auto add = [&](Range range) -> Status {
    WH_ASSIGN(const Value part, slice(runtime, string, range));
    return parts.add(part);
  };
  WH_TRY(separator == nullptr ? split_at_spaces_right(string.text, max_splits, add)
                              : split_at_right(string.text, separator->text, max_splits, add));
  parts.reverse();
  return parts.finish();
}

Result<Value> strip(Runtime& runtime, const String& string, const String* characters, bool left, bool right) {
  const size_t set = characters != nullptr ? characters->text.size() : 0;
  WH_TRY(runtime.scan(string.text.size() * (1 + set / 16)));
  return slice(runtime, string,
               strip_range(string.text, characters != nullptr ? &characters->text : nullptr, left, right));
}

Result<Value> join(Runtime& runtime, const String& separator, std::span<const Value> items) {
  TextBuilder out(runtime);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) WH_TRY(out.append(separator));
    WH_TRY(append_str(runtime, out, items[i]));
    WH_TRY(runtime.step());
  }
  return out.finish();
}

Result<Value> repeat(Runtime& runtime, const String& string, Integer count) {
  const size_t most = runtime.limits().max_output;
  const auto size = static_cast<Integer>(string.text.size());
  if (size == 0 || count <= 0) return runtime.view({}, false);
  if (count > static_cast<Integer>(most) / size) {
    return make_error(Code::kResourceExhausted, "a text grew beyond {} bytes", most);
  }
  // By doubling, so that a short text costs few steps.
  TextBuilder out(runtime);
  const String* block = &string;
  while (true) {
    if (count % 2 == 1) WH_TRY(out.append(*block));
    count /= 2;
    if (count == 0) return out.finish();
    TextBuilder twice(runtime);
    WH_TRY(twice.append(*block));
    WH_TRY(twice.append(*block));
    WH_ASSIGN(const Value doubled, twice.finish());
    block = as_string(doubled);
  }
}

}  // namespace whippet::jinja
