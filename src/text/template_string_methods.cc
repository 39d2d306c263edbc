// Methods of strings, as Python has them.
#include "text/template_compare.h"
#include "text/template_methods.h"
#include "text/template_text.h"
#include "text/template_text_ops.h"

namespace whippet::jinja {
namespace {

template <auto operation>
Result<Value> plain(Runtime& runtime, const Value& receiver, const Arguments&) {
  return operation(runtime, *as_string(receiver));
}

template <bool left, bool right>
Result<Value> strip_method(Runtime& runtime, const Value& receiver, const Arguments& arguments) {
  WH_ASSIGN(const String* characters, string_argument(arguments[0], "chars"));
  return strip(runtime, *as_string(receiver), characters, left, right);
}

template <auto operation>
Result<Value> split_method(Runtime& runtime, const Value& receiver, const Arguments& arguments) {
  WH_ASSIGN(const String* separator, string_argument(arguments[0], "sep"));
  WH_ASSIGN(const int64_t max_splits, integer_argument(arguments[1], "maxsplit", -1));
  return operation(runtime, *as_string(receiver), separator, max_splits);
}

Result<Value> split_lines_method(Runtime& runtime, const Value& receiver, const Arguments& arguments) {
  const String& string = *as_string(receiver);
  const bool keep_ends = is_true(arguments[0]);
  WH_TRY(runtime.scan(string.text.size()));
  ListBuilder lines(runtime);
  Range pending{0, 0};
  bool any = false;
  const auto flush = [&](size_t next) -> Status {
    if (!any) return {};
    WH_ASSIGN(const Value line, slice(runtime, string, pending.first, keep_ends ? next : pending.second));
    return lines.add(line);
  };
  const auto take = [&](Range line) -> Status {
    WH_TRY(flush(line.first));
    pending = line;
    any = true;
    return {};
  };
  WH_TRY(for_each_line(string.text, take));
  WH_TRY(flush(string.text.size()));
  return lines.finish();
}

template <bool at_start>
bool affixed(const String& string, const String& affix) {
  return at_start ? string.text.starts_with(affix.text) : string.text.ends_with(affix.text);
}

template <bool at_start>
Result<Value> has_affix(Runtime& runtime, const Value& receiver, const Arguments& arguments) {
  const String& string = *as_string(receiver);
  if (const String* affix = as_string(arguments[0])) {
    WH_TRY(runtime.scan(affix->text.size()));
    return Value(affixed<at_start>(string, *affix));
  }
  const Sequence* choices = as_sequence(arguments[0]);
  if (choices == nullptr || choices->type != SequenceType::kTuple) {
    return type_error("{} needs a str or a tuple of them, not {}", at_start ? "startswith()" : "endswith()",
                      type_name(arguments[0]));
  }
  for (const Value& choice : choices->items) {
    WH_ASSIGN(const String* affix, string_argument(choice, "prefix"));
    WH_TRY(runtime.step());
    if (affix != nullptr && affixed<at_start>(string, *affix)) return Value(true);
  }
  return Value(false);
}

template <bool at_start>
Result<Value> remove_affix(Runtime& runtime, const Value& receiver, const Arguments& arguments) {
  const String& string = *as_string(receiver);
  WH_ASSIGN(const String* affix, string_argument(arguments[0], "affix"));
  if (affix == nullptr || !affixed<at_start>(string, *affix)) return receiver;
  const size_t size = string.text.size();
  const size_t cut = affix->text.size();
  return at_start ? slice(runtime, string, cut, size) : slice(runtime, string, 0, size - cut);
}

Result<Value> replace_method(Runtime& runtime, const Value& receiver, const Arguments& arguments) {
  WH_ASSIGN(const String* from, string_argument(arguments[0], "old"));
  WH_ASSIGN(const String* to, string_argument(arguments[1], "new"));
  WH_ASSIGN(const int64_t count, integer_argument(arguments[2], "count", -1));
  if (from == nullptr || to == nullptr) return type_error("replace() needs two strings");
  return replace(runtime, *as_string(receiver), *from, *to, count);
}

Result<const String*> needle_of(Runtime& runtime, const String& string, const Value& argument) {
  WH_TRY(runtime.scan(string.text.size()));
  if (const String* needle = as_string(argument)) return needle;
  return type_error("expected a str to look for, not {}", type_name(argument));
}

template <bool last, bool must_be_there>
Result<Value> find_method(Runtime& runtime, const Value& receiver, const Arguments& arguments) {
  const String& string = *as_string(receiver);
  WH_ASSIGN(const String* needle, needle_of(runtime, string, arguments[0]));
  const size_t found =
      last ? find_last_text(string.text, needle->text) : find_text(string.text, needle->text);
  if (found != std::string_view::npos) return Value(Integer{count_chars(string.text.substr(0, found))});
  if (must_be_there) return type_error("index(): the text is not in it");
  return Value(Integer{-1});
}

Result<Value> count_method(Runtime& runtime, const Value& receiver, const Arguments& arguments) {
  const String& string = *as_string(receiver);
  WH_ASSIGN(const String* needle, needle_of(runtime, string, arguments[0]));
  if (needle->text.empty()) return Value(Integer{count_chars(string.text) + 1});
  Integer count = 0;
  for (size_t at = 0; (at = find_text(string.text, needle->text, at)) != std::string_view::npos; ++count) {
    at += needle->text.size();
    WH_TRY(runtime.step());
  }
  return Value(count);
}

Result<Value> join_method(Runtime& runtime, const Value& receiver, const Arguments& arguments) {
  WH_ASSIGN(const std::span<const Value> items, iterate(runtime, arguments[0]));
  for (const Value& item : items) {
    if (as_string(item) == nullptr) return type_error("join() needs strings, not {}", type_name(item));
  }
  return join(runtime, *as_string(receiver), items);
}

bool is_digit(char32_t code) { return code >= '0' && code <= '9'; }
bool is_letter_or_digit(char32_t code) { return is_letter(code) || is_digit(code); }

template <auto holds>
Result<Value> all_are(Runtime& runtime, const Value& receiver, const Arguments&) {
  const std::string_view text = as_string(receiver)->text;
  WH_TRY(runtime.scan(text.size()));
  for (size_t at = 0, size = 0; at < text.size(); at += size) {
    const Utf8Character c = char_at(text, at);
    size = c.size;
    if (c.code == kInvalidCharacter || !holds(c.code)) return Value(false);
  }
  return Value(!text.empty());
}

template <auto holds>
Result<Value> text_is(Runtime& runtime, const Value& receiver, const Arguments&) {
  WH_TRY(runtime.scan(as_string(receiver)->text.size()));
  return Value(holds(as_string(receiver)->text));
}

constexpr MethodEntry kMethods[] = {
    {"capitalize", {}, 0, plain<capitalize>},
    {"count", {"sub"}, 1, count_method},
    {"endswith", {"suffix"}, 1, has_affix<false>},
    {"find", {"sub"}, 1, find_method<false, false>},
    {"index", {"sub"}, 1, find_method<false, true>},
    {"isalnum", {}, 0, all_are<is_letter_or_digit>},
    {"isalpha", {}, 0, all_are<is_letter>},
    {"isdigit", {}, 0, all_are<is_digit>},
    {"islower", {}, 0, text_is<is_lower>},
    {"isspace", {}, 0, all_are<is_space>},
    {"isupper", {}, 0, text_is<is_upper>},
    {"join", {"iterable"}, 1, join_method},
    {"lower", {}, 0, plain<lower>},
    {"lstrip", {"chars"}, 0, strip_method<true, false>},
    {"removeprefix", {"prefix"}, 1, remove_affix<true>},
    {"removesuffix", {"suffix"}, 1, remove_affix<false>},
    {"replace", {"old", "new", "count"}, 2, replace_method},
    {"rfind", {"sub"}, 1, find_method<true, false>},
    {"rsplit", {"sep", "maxsplit"}, 0, split_method<split_right>},
    {"rstrip", {"chars"}, 0, strip_method<false, true>},
    {"split", {"sep", "maxsplit"}, 0, split_method<split>},
    {"splitlines", {"keepends"}, 0, split_lines_method},
    {"startswith", {"prefix"}, 1, has_affix<true>},
    {"strip", {"chars"}, 0, strip_method<true, true>},
    {"title", {}, 0, plain<title>},
    {"upper", {}, 0, plain<upper>},
};

}  // namespace

std::span<const MethodEntry> string_methods() { return kMethods; }

}  // namespace whippet::jinja
