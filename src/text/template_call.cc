#include "text/template_call.h"

#include <algorithm>

#include "text/template_compare.h"

namespace whippet::jinja {

Result<Arguments> bind(std::string_view callee, const Parameters& parameters, size_t required,
                       const CallArguments& call) {
  const auto end = std::find(parameters.begin(), parameters.end(), nullptr);
  const auto count = static_cast<size_t>(end - parameters.begin());
  if (call.positional.size() > count) {
    return type_error("{}() takes at most {} arguments, not {}", callee, count, call.positional.size());
  }
  Arguments arguments;
  std::copy(call.positional.begin(), call.positional.end(), arguments.begin());
  for (const auto& [name, value] : call.keywords) {
    const auto found = std::find(parameters.begin(), end, std::string_view(name));
    if (found == end) return type_error("{}() has no parameter '{}'", callee, name);
    const auto place = static_cast<size_t>(found - parameters.begin());
    if (place < call.positional.size()) return type_error("{}() got '{}' twice", callee, name);
    arguments[place] = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (is_absent(arguments[i])) return type_error("{}() needs '{}'", callee, parameters[i]);
  }
  return arguments;
}

Result<const String*> string_argument(const Value& value, const char* name) {
  if (is_absent(value) || is_none(value)) return nullptr;
  if (const String* string = as_string(value)) return string;
  return type_error("'{}' must be a str, not {}", name, type_name(value));
}

Result<int64_t> integer_argument(const Value& value, const char* name, int64_t absent) {
  if (is_absent(value) || is_none(value)) return absent;
  const auto integer = as_integer(value);
  if (!integer) return type_error("'{}' must be an int, not {}", name, type_name(value));
  return static_cast<int64_t>(std::clamp<Integer>(*integer, INT64_MIN, INT64_MAX));
}

}  // namespace whippet::jinja
