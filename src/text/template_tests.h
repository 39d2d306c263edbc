// Tests: value is name(argument).
#pragma once

#include <string_view>

#include "base/error.h"
#include "text/template_call.h"
#include "text/template_runtime.h"
#include "text/template_value.h"

namespace whippet::jinja {

struct Test {
  std::string_view name;
  size_t num_arguments;
  Result<bool> (*holds)(Runtime& runtime, const Value& value, const Value& argument);
};

const Test* find_test(std::string_view name);  // null: there is none
Result<bool> apply_test(Runtime& runtime, const Test& test, const Value& value, const CallArguments& call);

}  // namespace whippet::jinja
