// Values as text: what {{ }} prints (Python's str), what is printed inside lists (Python's repr), and JSON as
// Python's json.dumps writes it. What users wrote stays marked, escapes included.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "text/template_runtime.h"
#include "text/template_text.h"
#include "text/template_value.h"

namespace whippet::jinja {

std::string to_decimal(Integer integer);
std::string float_repr(double number);

Status append_str(Runtime& runtime, TextBuilder& out, const Value& value);
// The value as a string; a string is itself.
Result<const String*> to_string(Runtime& runtime, const Value& value);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<String> indent;  // of one level; null: everything on one line
  String item_separator{", ", {}};
  String key_separator{": ", {}};
};
Status append_json(Runtime& runtime, TextBuilder& out, const Value& value, const JsonStyle& style);

}  // namespace whippet::jinja
