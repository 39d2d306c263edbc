// Arithmetic and comparisons, as Python does them; integers stay within 64 bits.
#pragma once

#include "base/error.h"
#include "text/template_runtime.h"
#include "text/template_value.h"

namespace whippet::jinja {

enum class Operator {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

const char* spelling(Operator operation);
// The result of an arithmetic operator.
Result<Value> calculate(Runtime& runtime, Operator operation, const Value& left, const Value& right);
Result<Value> negate(const Value& value);
// The result of a comparison.
Result<bool> holds(Runtime& runtime, Operator operation, const Value& left, const Value& right);

}  // namespace whippet::jinja
