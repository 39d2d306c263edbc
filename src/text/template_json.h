// The variables of a render: JSON to values.
#pragma once

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/template_runtime.h"
#include "text/template_value.h"

namespace whippet::jinja {

// Strings are views into the JSON, which must outlive the runtime. user: every string, keys included, is
// marked.
Result<Value> from_json(Runtime& runtime, const nlohmann::ordered_json& json, bool user);

}  // namespace whippet::jinja
