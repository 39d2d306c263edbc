#include "text/template_format.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/template_compare.h"

namespace whippet::jinja {
namespace {

// Python prints a character as it is when it is neither a control, a surrogate, unassigned nor a separator.
bool is_printable(char32_t code) {
  if (code < 0x80) return code >= 0x20 && code < 0x7F;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::string python_escape(char32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  const auto number = static_cast<uint32_t>(code);
  if (number <= 0xFF) return fmt::format("\\x{:02x}", number);
  return number <= 0xFFFF ? fmt::format("\\u{:04x}", number) : fmt::format("\\U{:08x}", number);
}

Status append_string_repr(TextBuilder& out, const String& string) {
  const bool has_single = string.text.find('\'') != std::string_view::npos;
  const char quote = has_single && string.text.find('"') == std::string_view::npos ? '"' : '\'';
  WH_TRY(out.append({&quote, 1}));
  const auto add_part = [&](std::string_view part, bool user) -> Status {
    size_t plain = 0;
    for (size_t at = 0; at < part.size();) {
      const Utf8Character c = char_at(part, at);
      const bool quoted = c.code == '\\' || c.code == static_cast<char32_t>(quote);
      if (quoted || (c.code != kInvalidCharacter && !is_printable(c.code))) {
        WH_TRY(out.append(part.substr(plain, at - plain), user));
        WH_TRY(out.append(quoted ? std::string{'\\', part[at]} : python_escape(c.code), user));
        plain = at + c.size;
      }
      at += c.size;
    }
    return out.append(part.substr(plain), user);
  };
  WH_TRY(for_each_part(string, add_part));
  return out.append({&quote, 1});
}

Status append_repr(Runtime& runtime, TextBuilder& out, const Value& value);

Status append_sequence_repr(Runtime& runtime, TextBuilder& out, const Sequence& sequence) {
  const Nesting nesting(runtime);
  WH_TRY(nesting.status());
  const bool tuple = sequence.type == SequenceType::kTuple;
  const bool view = sequence.type == SequenceType::kView;
  if (sequence.name == std::string_view("range")) return type_error("a range cannot be printed");
  if (view) WH_TRY(out.append(fmt::format("{}(", sequence.name)));
  WH_TRY(out.append(tuple ? "(" : "["));
  for (size_t i = 0; i < sequence.items.size(); ++i) {
    if (i > 0) WH_TRY(out.append(", "));
    WH_TRY(append_repr(runtime, out, sequence.items[i]));
  }
  if (tuple) return out.append(sequence.items.size() == 1 ? ",)" : ")");
  return out.append(view ? "])" : "]");
}

Status append_dict_repr(Runtime& runtime, TextBuilder& out, const Dict& dict) {
  const Nesting nesting(runtime);
  WH_TRY(nesting.status());
  WH_TRY(out.append("{"));
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) WH_TRY(out.append(", "));
    WH_TRY(append_repr(runtime, out, dict.entries[i].key));
    WH_TRY(out.append(": "));
    WH_TRY(append_repr(runtime, out, dict.entries[i].value));
  }
  return out.append("}");
}

Status append_repr(Runtime& runtime, TextBuilder& out, const Value& value) {
  WH_TRY(runtime.step());
  if (const String* string = as_string(value)) return append_string_repr(out, *string);
  if (is_undefined(value)) return out.append("Undefined");
  return append_str(runtime, out, value);
}

// Characters that need an escape in JSON; the rest is copied.
Status append_json_part(TextBuilder& out, std::string_view part, bool user, bool ensure_ascii) {
  size_t plain = 0;
  const auto escape = [&](size_t at, size_t size, std::string_view escaped) -> Status {
    WH_TRY(out.append(part.substr(plain, at - plain), user));
    plain = at + size;
    return out.append(escaped, user);
  };
  for (size_t at = 0; at < part.size();) {
    const auto byte = static_cast<unsigned char>(part[at]);
    if (byte >= 0x7F && ensure_ascii) {
      const Utf8Character c = char_at(part, at);
      const auto code = static_cast<uint32_t>(c.code == kInvalidCharacter ? 0xFFFD : c.code);
      WH_TRY(escape(at, c.size,
                    code < 0x10000
                        ? fmt::format("\\u{:04x}", code)
                        : fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF))));
      at += c.size;
      continue;
    }
    if (byte < 0x20 || byte == '"' || byte == '\\') {
      static constexpr std::string_view kNamed = "\"\\\b\f\n\r\t";
      static constexpr std::string_view kLetters = "\"\\bfnrt";
      const size_t named = kNamed.find(part[at]);
      WH_TRY(escape(at, 1,
                    named != std::string_view::npos ? std::string{'\\', kLetters[named]}
                                                    : fmt::format("\\u{:04x}", byte)));
    }
    ++at;
  }
  return out.append(part.substr(plain), user);
}

Status append_json_string(TextBuilder& out, const String& string, const JsonStyle& style) {
  WH_TRY(out.append("\""));
  const auto add_part = [&](std::string_view part, bool user) {
    return append_json_part(out, part, user, style.ensure_ascii);
  };
  WH_TRY(for_each_part(string, add_part));
  return out.append("\"");
}

// The scalar as JSON, nullopt for what is none.
std::optional<std::string> json_scalar(const Value& value) {
  if (is_none(value)) return "null";
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<Integer>(&value)) return to_decimal(*integer);
  if (const auto* number = std::get_if<double>(&value)) {
    if (std::isnan(*number)) return "NaN";
    if (std::isinf(*number)) return *number > 0 ? "Infinity" : "-Infinity";
    return float_repr(*number);
  }
  return std::nullopt;
}

std::string_view key_text(const Value& key) {
  const String* string = as_string(key);
  return string != nullptr ? string->text : std::string_view();
}

struct JsonWriter {
  Runtime& runtime;
  TextBuilder& out;
  const JsonStyle& style;

  Status new_line(int level) {
    if (!style.indent) return {};
    WH_TRY(out.append("\n"));
    for (int i = 0; i < level; ++i) WH_TRY(out.append(*style.indent));
    return {};
  }

  Status key(const Value& value) {
    if (const String* string = as_string(value)) return append_json_string(out, *string, style);
    return out.append(fmt::format("\"{}\"", json_scalar(value).value_or("")));
  }

  Status list(const Sequence& sequence, int level) {
    if (sequence.items.empty()) return out.append("[]");
    WH_TRY(out.append("["));
    for (size_t i = 0; i < sequence.items.size(); ++i) {
      if (i > 0) WH_TRY(out.append(style.item_separator));
      WH_TRY(new_line(level + 1));
      WH_TRY(write(sequence.items[i], level + 1));
    }
    WH_TRY(new_line(level));
    return out.append("]");
  }

  Status dict(const Dict& dict, int level) {
    if (dict.entries.empty()) return out.append("{}");
    std::vector<DictEntry> entries(dict.entries.begin(), dict.entries.end());
    if (style.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [](const DictEntry& a, const DictEntry& b) {
        return key_text(a.key) < key_text(b.key);
      });
    }
    WH_TRY(out.append("{"));
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) WH_TRY(out.append(style.item_separator));
      WH_TRY(new_line(level + 1));
      WH_TRY(key(entries[i].key));
      WH_TRY(out.append(style.key_separator));
      WH_TRY(write(entries[i].value, level + 1));
    }
    WH_TRY(new_line(level));
    return out.append("}");
  }

  Status write(const Value& value, int level) {
    WH_TRY(runtime.step());
    if (const String* string = as_string(value)) return append_json_string(out, *string, style);
    if (const auto scalar = json_scalar(value)) return out.append(*scalar);
    const Nesting nesting(runtime);
    WH_TRY(nesting.status());
    const Sequence* sequence = as_sequence(value);
    const bool listed = sequence != nullptr &&
                        (sequence->type == SequenceType::kList || sequence->type == SequenceType::kTuple);
    if (listed) return list(*sequence, level);
    if (const Dict* object = as_dict(value)) return dict(*object, level);
    if (const auto* undefined = std::get_if<Undefined>(&value)) return type_error("{}", describe(*undefined));
    return type_error("{} cannot be written as JSON", type_name(value));
  }
};

}  // namespace

std::string to_decimal(Integer integer) {
  char digits[40];
  size_t at = sizeof(digits);
  const bool negative = integer < 0;
  auto rest = static_cast<unsigned __int128>(negative ? -integer : integer);
  do {
    digits[--at] = static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (negative) digits[--at] = '-';
  return {digits + at, sizeof(digits) - at};
}

std::string float_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char buffer[64];
  // The shortest digits that read back as the same number; Python spells them out between 1e-4 and 1e16.
  const double size = std::fabs(number);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof(buffer), number, format).ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

Status append_str(Runtime& runtime, TextBuilder& out, const Value& value) {
  if (const String* string = as_string(value)) return out.append(*string);
  if (is_undefined(value)) return {};
  if (is_none(value)) return out.append("None");
  if (const auto* boolean = std::get_if<bool>(&value)) return out.append(*boolean ? "True" : "False");
  if (const auto* integer = std::get_if<Integer>(&value)) return out.append(to_decimal(*integer));
  if (const auto* number = std::get_if<double>(&value)) return out.append(float_repr(*number));
  if (const Sequence* sequence = as_sequence(value)) return append_sequence_repr(runtime, out, *sequence);
  if (const Dict* dict = as_dict(value)) return append_dict_repr(runtime, out, *dict);
  return type_error("{} cannot be printed", type_name(value));
}

Result<const String*> to_string(Runtime& runtime, const Value& value) {
  if (const String* string = as_string(value)) return string;
  TextBuilder out(runtime);
  WH_TRY(append_str(runtime, out, value));
  WH_ASSIGN(const Value text, out.finish());
  return as_string(text);
}

Status append_json(Runtime& runtime, TextBuilder& out, const Value& value, const JsonStyle& style) {
  return JsonWriter{runtime, out, style}.write(value, 0);
}

}  // namespace whippet::jinja
