// Filters that make text: tojson, trim, replace, indent and the like.
#include "text/template_compare.h"
#include "text/template_filters.h"
#include "text/template_format.h"
#include "text/template_text.h"
#include "text/template_text_ops.h"

namespace whippet::jinja {
namespace {

// The filters of strings take any value, as str() shows it.
template <auto operation>
Result<Value> on_text(Runtime& runtime, const Value& value, const Arguments&) {
  WH_ASSIGN(const String* string, to_string(runtime, value));
  return operation(runtime, *string);
}

Result<Value> trim(Runtime& runtime, const Value& value, const Arguments& arguments) {
  WH_ASSIGN(const String* string, to_string(runtime, value));
  WH_ASSIGN(const String* characters, string_argument(arguments[0], "chars"));
  return strip(runtime, *string, characters, true, true);
}

Result<Value> replace_filter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  WH_ASSIGN(const String* string, to_string(runtime, value));
  WH_ASSIGN(const String* from, to_string(runtime, arguments[0]));
  WH_ASSIGN(const String* to, to_string(runtime, arguments[1]));
  WH_ASSIGN(const int64_t count, integer_argument(arguments[2], "count", -1));
  return replace(runtime, *string, *from, *to, count);
}

// Words begin after white space, hyphens and opening brackets; unlike str.title(), "it's" stays one.
Result<Value> title_filter(Runtime& runtime, const Value& value, const Arguments&) {
  WH_ASSIGN(const String* string, to_string(runtime, value));
  TextBuilder out(runtime);
  const std::string_view text = string->text;
  const auto separates = [&](size_t at) {
    return is_space(char_at(text, at).code) ||
           std::string_view("-({[<").find(text[at]) != std::string_view::npos;
  };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    const bool separator = separates(at);
    while (end < text.size() && separates(end) == separator) end += char_at(text, end).size;
    const size_t head = at + char_at(text, at).size;
    WH_ASSIGN(const Value first, slice(runtime, *string, at, head));
    WH_ASSIGN(const Value rest, slice(runtime, *string, head, end));
    WH_ASSIGN(const Value raised, upper(runtime, *as_string(first)));
    WH_ASSIGN(const Value lowered, lower(runtime, *as_string(rest)));
    WH_TRY(out.append(*as_string(raised)));
    WH_TRY(out.append(*as_string(lowered)));
    at = end;
  }
  return out.finish();
}

Result<String> indentation(Runtime& runtime, const Value& width, int64_t absent) {
  if (const String* string = as_string(width)) return *string;
  WH_ASSIGN(const int64_t count, integer_argument(width, "width", absent));
  WH_ASSIGN(const Value spaces, repeat(runtime, String{" ", {}}, count));
  return *as_string(spaces);
}

Result<Value> indent(Runtime& runtime, const Value& value, const Arguments& arguments) {
  WH_ASSIGN(const String* string, to_string(runtime, value));
  WH_ASSIGN(const String prefix, indentation(runtime, arguments[0], 4));
  const bool first_too = is_true(arguments[1]);
  const bool blank_too = is_true(arguments[2]);
  TextBuilder out(runtime);
  bool first = true;
  const auto add_line = [&](Range line) -> Status {
    if (!first) WH_TRY(out.append("\n"));
    const bool blank = line.first == line.second;
    if (first ? first_too : (!blank || blank_too)) WH_TRY(out.append(prefix));
    first = false;
    return out.append(*string, line.first, line.second);
  };
  WH_TRY(runtime.scan(string->text.size()));
  WH_TRY(for_each_line(string->text, add_line));
  // A line end at the end begins one more, empty line.
  const std::string_view text = string->text;
  const size_t last = text.empty() ? 0 : char_before(text, text.size());
  if (text.empty() || is_line_end(char_at(text, last).code)) WH_TRY(add_line({text.size(), text.size()}));
  return out.finish();
}

Result<Value> tojson(Runtime& runtime, const Value& value, const Arguments& arguments) {
  JsonStyle style;
  style.ensure_ascii = is_true(arguments[0]);
  if (!is_absent(arguments[1]) && !is_none(arguments[1])) {
    WH_ASSIGN(style.indent, indentation(runtime, arguments[1], 0));
    style.item_separator.text = ",";
  }
  if (!is_absent(arguments[2]) && !is_none(arguments[2])) {
    WH_ASSIGN(const std::span<const Value> pair, iterate(runtime, arguments[2]));
    if (pair.size() != 2 || as_string(pair[0]) == nullptr || as_string(pair[1]) == nullptr) {
      return type_error("'separators' must be two strings");
    }
    style.item_separator = *as_string(pair[0]);
    style.key_separator = *as_string(pair[1]);
  }
  style.sort_keys = is_true(arguments[3]);
  TextBuilder out(runtime);
  WH_TRY(append_json(runtime, out, value, style));
  return out.finish();
}

Result<Value> text_of(Runtime& runtime, const Value& value, const Arguments&) {
  WH_ASSIGN(const String* string, to_string(runtime, value));
  return Value(string);
}

constexpr Filter kFilters[] = {
    {"capitalize", {}, 0, on_text<capitalize>},
    {"indent", {"width", "first", "blank"}, 0, indent},
    {"lower", {}, 0, on_text<lower>},
    {"replace", {"old", "new", "count"}, 2, replace_filter},
    {"safe", {}, 0, text_of},
    {"string", {}, 0, text_of},
    {"title", {}, 0, title_filter},
    {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, tojson},
    {"trim", {"chars"}, 0, trim},
    {"upper", {}, 0, on_text<upper>},
};

}  // namespace

std::span<const Filter> text_filters() { return kFilters; }

}  // namespace whippet::jinja
