// Methods of strings, lists, dicts and loops: obj.name(arguments).
#pragma once

#include <span>
#include <string_view>

#include "base/error.h"
#include "text/template_call.h"
#include "text/template_runtime.h"
#include "text/template_value.h"

namespace whippet::jinja {

struct MethodEntry {
  std::string_view name;
  Parameters parameters;
  size_t required;
  Result<Value> (*call)(Runtime& runtime, const Value& receiver, const Arguments& arguments);
};
std::span<const MethodEntry> string_methods();
std::span<const MethodEntry> collection_methods(const Value& receiver);  // none for what has no methods

// Whether Python's type has that method, implemented here or not.
bool has_method(const Value& receiver, std::string_view name);
// kUnsupported for a method that Python has and templates here do not.
Result<Value> call_method(Runtime& runtime, const Method& method, const CallArguments& call);

}  // namespace whippet::jinja
