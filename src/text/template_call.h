// Arguments of functions, methods, filters and tests, and how they find their parameters.
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/template_runtime.h"
#include "text/template_value.h"

namespace whippet::jinja {

struct CallArguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> keywords;
};

inline constexpr size_t kMaxParameters = 5;
using Parameters = std::array<const char*, kMaxParameters>;  // names in order; the rest is null
using Arguments = std::array<Value, kMaxParameters>;         // one per parameter; is_absent() where not given

// An error for arguments that are too many, unknown or given twice, and for absent ones of the first
// `required`.
Result<Arguments> bind(std::string_view callee, const Parameters& parameters, size_t required,
                       const CallArguments& call);

// An argument that has to be a string; null when it is absent or none.
Result<const String*> string_argument(const Value& value, const char* name);
// An argument that has to be an integer, clamped to 64 bits.
Result<int64_t> integer_argument(const Value& value, const char* name, int64_t absent);

}  // namespace whippet::jinja
