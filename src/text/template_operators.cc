#include "text/template_operators.h"

#include <cmath>

#include "text/template_compare.h"
#include "text/template_text.h"
#include "text/template_text_ops.h"

namespace whippet::jinja {
namespace {

constexpr Integer kLargest = (Integer{1} << 64) - 1;

Result<Value> bounded(Integer integer) {
  if (integer > kLargest || integer < -kLargest) return type_error("an integer grew beyond 64 bits");
  return Value(integer);
}

Integer floor_divide(Integer a, Integer b) {
  const Integer quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// Both are at most 64 bits and a sign, so that only the product could need more than 128.
Result<Value> multiply(Integer a, Integer b) {
  const Integer size = a < 0 ? -a : a;
  const Integer other = b < 0 ? -b : b;
  if (size != 0 && other > kLargest / size) return bounded(kLargest + 1);
  return Value(a * b);
}

Result<Value> power(Integer base, Integer exponent) {
  if (exponent < 0) return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  if (base == 0 || base == 1) return Value(exponent == 0 ? Integer{1} : base);
  if (base == -1) return Value(exponent % 2 == 0 ? Integer{1} : base);
  Integer result = 1;
  for (; exponent > 0; --exponent) {
    WH_ASSIGN(const Value product, multiply(result, base));
    result = std::get<Integer>(product);
  }
  return Value(result);
}

Result<Value> calculate_integers(Operator operation, Integer a, Integer b) {
  switch (operation) {
    case Operator::kAdd:
      return bounded(a + b);
    case Operator::kSubtract:
      return bounded(a - b);
    case Operator::kMultiply:
      return multiply(a, b);
    case Operator::kDivide:
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case Operator::kFloorDivide:
      return Value(floor_divide(a, b));
    case Operator::kModulo:
      return Value(a - floor_divide(a, b) * b);
    default:
      return power(a, b);
  }
}

double float_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

Result<Value> calculate_floats(Operator operation, double a, double b) {
  switch (operation) {
    case Operator::kAdd:
      return Value(a + b);
    case Operator::kSubtract:
      return Value(a - b);
    case Operator::kMultiply:
      return Value(a * b);
    case Operator::kDivide:
      return Value(a / b);
    case Operator::kFloorDivide:
      return Value(std::floor((a - float_modulo(a, b)) / b + 0.5));
    case Operator::kModulo:
      return Value(float_modulo(a, b));
    default:
      break;
  }
  if (a < 0 && std::floor(b) != b) return type_error("a negative number to a fractional power");
  return Value(std::pow(a, b));
}

Result<Value> concatenate(Runtime& runtime, const Sequence& a, const Sequence& b) {
  ListBuilder items(runtime);
  for (const Sequence* part : {&a, &b}) {
    for (const Value& item : part->items) WH_TRY(items.add(item));
  }
  return items.finish(a.type, a.name);
}

Result<Value> repeat_items(Runtime& runtime, const Sequence& sequence, Integer count) {
  ListBuilder items(runtime);
  for (; count > 0 && !sequence.items.empty(); --count) {
    for (const Value& item : sequence.items) WH_TRY(items.add(item));
  }
  return items.finish(sequence.type, sequence.name);
}

bool is_list_or_tuple(const Sequence* sequence) {
  return sequence != nullptr &&
         (sequence->type == SequenceType::kList || sequence->type == SequenceType::kTuple);
}

Error operand_error(Operator operation, const Value& left, const Value& right) {
  for (const Value* side : {&left, &right}) {
    if (const auto* undefined = std::get_if<Undefined>(side)) return type_error("{}", describe(*undefined));
  }
  if (operation == Operator::kModulo && as_string(left) != nullptr) {
    return make_error(Code::kUnsupported, "formatting a str with % is not supported");
  }
  return type_error("'{}' does not work between {} and {}", spelling(operation), type_name(left),
                    type_name(right));
}

}  // namespace

const char* spelling(Operator operation) {
  static constexpr const char* kSpellings[] = {
      "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kSpellings[static_cast<size_t>(operation)];
}

Result<Value> calculate(Runtime& runtime, Operator operation, const Value& left, const Value& right) {
  const auto a = as_integer(left);
  const auto b = as_integer(right);
  const auto x = as_number(left);
  const auto y = as_number(right);
  const bool divides =
      operation == Operator::kDivide || operation == Operator::kFloorDivide || operation == Operator::kModulo;
  if (x && y) {
    const bool inverts = operation == Operator::kPower && *x == 0 && *y < 0;
    if ((divides && *y == 0) || inverts) return type_error("division by zero");
    return a && b ? calculate_integers(operation, *a, *b) : calculate_floats(operation, *x, *y);
  }
  const Sequence* items = as_sequence(left);
  const Sequence* others = as_sequence(right);
  if (operation == Operator::kAdd) {
    if (as_string(left) != nullptr && as_string(right) != nullptr) {
      TextBuilder out(runtime);
      WH_TRY(out.append(*as_string(left)));
      WH_TRY(out.append(*as_string(right)));
      return out.finish();
    }
    if (is_list_or_tuple(items) && is_list_or_tuple(others) && items->type == others->type) {
      return concatenate(runtime, *items, *others);
    }
  }
  if (operation == Operator::kMultiply) {
    if (as_string(left) != nullptr && b) return repeat(runtime, *as_string(left), *b);
    if (as_string(right) != nullptr && a) return repeat(runtime, *as_string(right), *a);
    if (is_list_or_tuple(items) && b) return repeat_items(runtime, *items, *b);
    if (is_list_or_tuple(others) && a) return repeat_items(runtime, *others, *a);
  }
  return operand_error(operation, left, right);
}

Result<Value> negate(const Value& value) {
  if (const auto integer = as_integer(value)) return Value(-*integer);
  if (const auto* number = std::get_if<double>(&value)) return Value(-*number);
  if (const auto* undefined = std::get_if<Undefined>(&value)) return type_error("{}", describe(*undefined));
  return type_error("{} has no negative", type_name(value));
}

Result<bool> holds(Runtime& runtime, Operator operation, const Value& left, const Value& right) {
  if (operation == Operator::kEqual) return equal(runtime, left, right);
  if (operation == Operator::kIn) return contains(runtime, right, left);
  if (operation == Operator::kNotEqual || operation == Operator::kNotIn) {
    const bool membership = operation == Operator::kNotIn;
    WH_ASSIGN(const bool same, membership ? contains(runtime, right, left) : equal(runtime, left, right));
    return !same;
  }
  WH_ASSIGN(const int order, compare(runtime, left, right));
  switch (operation) {
    case Operator::kLess:
      return order < 0;
    case Operator::kLessEqual:
      return order <= 0;
    case Operator::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

}  // namespace whippet::jinja
