// What Python thinks of values: truth, equality, order, membership, and what their types are called.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/template_runtime.h"
#include "text/template_value.h"

namespace whippet::jinja {

template <class... Args>
Error type_error(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(Code::kInvalidArgument, format, std::forward<Args>(args)...);
}

const char* type_name(const Value& value);              // "str", "dict", ...
std::string describe(const Undefined& undefined);       // "'tools' is undefined"
std::optional<Integer> as_integer(const Value& value);  // int, and bool as 0 or 1
std::optional<double> as_number(const Value& value);    // those and float

bool is_true(const Value& value);
Result<bool> equal(Runtime& runtime, const Value& a, const Value& b);
// Negative, zero or positive. An error for types that have no order.
Result<int> compare(Runtime& runtime, const Value& a, const Value& b);
Result<bool> contains(Runtime& runtime, const Value& container, const Value& item);

// Keys of a dict that are no strings: numbers, booleans, none.
Status check_key(const Value& key);
bool equal_keys(const Value& a, const Value& b);
// The value of a key, null when there is none.
Result<const Value*> find(Runtime& runtime, const Dict& dict, const Value& key);
Result<const Value*> find(Runtime& runtime, const Dict& dict, std::string_view name);

// What a for loop goes through: items, keys of a dict, characters of a string. Uses up an iterator.
Result<std::span<const Value>> iterate(Runtime& runtime, const Value& value);

}  // namespace whippet::jinja
