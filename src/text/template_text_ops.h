// What Python's strings can do, on marked text: a piece of a user's text stays the user's, and what a
// template puts between or instead stays the template's.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "text/template_runtime.h"
#include "text/template_text.h"
#include "text/template_value.h"

namespace whippet::jinja {

// Simple case mapping of Unicode, and SS for the sharp s.
Result<Value> upper(Runtime& runtime, const String& string);
Result<Value> lower(Runtime& runtime, const String& string);
Result<Value> capitalize(Runtime& runtime, const String& string);
Result<Value> title(Runtime& runtime, const String& string);
bool is_letter(char32_t code);
bool is_upper(std::string_view text);  // some letter has a case, and all those are upper
bool is_lower(std::string_view text);

// count < 0: every place.
Result<Value> replace(Runtime& runtime, const String& string, const String& from, const String& to,
                      int64_t count);
// separator null: at runs of white space. max_splits < 0: everywhere.
Result<Value> split(Runtime& runtime, const String& string, const String* separator, int64_t max_splits);
Result<Value> split_right(Runtime& runtime, const String& string, const String* separator,
                          int64_t max_splits);
Result<Value> strip(Runtime& runtime, const String& string, const String* characters, bool left, bool right);
Result<Value> join(Runtime& runtime, const String& separator, std::span<const Value> items);
Result<Value> repeat(Runtime& runtime, const String& string, Integer count);

}  // namespace whippet::jinja
