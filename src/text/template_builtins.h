// The functions that every template finds: range, dict, namespace, raise_exception, strftime_now.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/template_call.h"
#include "text/template_runtime.h"
#include "text/template_value.h"

namespace whippet::jinja {

std::optional<Builtin> find_builtin(std::string_view name);
// Jinja has this function, but it is not implemented here.
bool is_other_builtin(std::string_view name);
Result<Value> call_builtin(Runtime& runtime, Builtin builtin, const CallArguments& call);
// Sets an attribute of a namespace.
Status set_attribute(Runtime& runtime, Namespace& space, std::string_view name, const Value& value);
// C's strftime in English; kUnsupported for a directive that it does not know.
Result<std::string> format_time(std::chrono::sys_seconds time, std::string_view format);

}  // namespace whippet::jinja
