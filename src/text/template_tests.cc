#include "text/template_tests.h"

#include <algorithm>

#include "text/template_compare.h"
#include "text/template_format.h"
#include "text/template_operators.h"
#include "text/template_text_ops.h"

namespace whippet::jinja {
namespace {

using Holds = Result<bool>;

template <class... T>
Holds is_a(Runtime&, const Value& value, const Value&) {
  return (std::holds_alternative<T>(value) || ...);
}

Holds is_defined(Runtime&, const Value& value, const Value&) { return !is_undefined(value); }
Holds is_number(Runtime&, const Value& value, const Value&) { return as_number(value).has_value(); }

template <bool wanted>
Holds is_boolean(Runtime&, const Value& value, const Value&) {
  const auto* boolean = std::get_if<bool>(&value);
  return boolean != nullptr && *boolean == wanted;
}

// What has a length and an index.
Holds is_sequence(Runtime&, const Value& value, const Value&) {
  const Sequence* sequence = as_sequence(value);
  const bool listed = sequence != nullptr &&
                      (sequence->type == SequenceType::kList || sequence->type == SequenceType::kTuple);
  return listed || as_string(value) != nullptr || as_dict(value) != nullptr || is_undefined(value);
}

Holds is_iterable(Runtime&, const Value& value, const Value&) {
  return as_sequence(value) != nullptr || as_string(value) != nullptr || as_dict(value) != nullptr ||
         is_undefined(value);
}

Result<Integer> remainder(const Value& value, Integer divisor) {
  const auto integer = as_integer(value);
  if (!integer) return type_error("expected an int, not {}", type_name(value));
  if (divisor == 0) return type_error("division by zero");
  return *integer % divisor;
}

Holds is_odd(Runtime&, const Value& value, const Value&) {
  WH_ASSIGN(const Integer rest, remainder(value, 2));
  return rest != 0;
}
Holds is_even(Runtime&, const Value& value, const Value&) {
  WH_ASSIGN(const Integer rest, remainder(value, 2));
  return rest == 0;
}
Holds is_divisible(Runtime&, const Value& value, const Value& argument) {
  const auto divisor = as_integer(argument);
  if (!divisor) return type_error("divisibleby needs an int, not {}", type_name(argument));
  WH_ASSIGN(const Integer rest, remainder(value, *divisor));
  return rest == 0;
}

template <Operator operation>
Holds compares(Runtime& runtime, const Value& value, const Value& argument) {
  return holds(runtime, operation, value, argument);
}

Holds is_same(Runtime& runtime, const Value& value, const Value& argument) {
  return value.index() == argument.index() ? equal(runtime, value, argument) : Holds(false);
}

template <bool (*is_cased)(std::string_view)>
Holds text_is(Runtime& runtime, const Value& value, const Value&) {
  WH_ASSIGN(const String* string, to_string(runtime, value));
  WH_TRY(runtime.scan(string->text.size()));
  return is_cased(string->text);
}

constexpr Test kTests[] = {
    {"!=", 1, compares<Operator::kNotEqual>},
    {"<", 1, compares<Operator::kLess>},
    {"<=", 1, compares<Operator::kLessEqual>},
    {"==", 1, compares<Operator::kEqual>},
    {">", 1, compares<Operator::kGreater>},
    {">=", 1, compares<Operator::kGreaterEqual>},
    {"boolean", 0, is_a<bool>},
    {"callable", 0, is_a<const Macro*, const Method*, Builtin>},
    {"defined", 0, is_defined},
    {"divisibleby", 1, is_divisible},
    {"eq", 1, compares<Operator::kEqual>},
    {"equalto", 1, compares<Operator::kEqual>},
    {"even", 0, is_even},
    {"false", 0, is_boolean<false>},
    {"float", 0, is_a<double>},
    {"ge", 1, compares<Operator::kGreaterEqual>},
    {"greaterthan", 1, compares<Operator::kGreater>},
    {"gt", 1, compares<Operator::kGreater>},
    {"in", 1, compares<Operator::kIn>},
    {"integer", 0, is_a<Integer>},
    {"iterable", 0, is_iterable},
    {"le", 1, compares<Operator::kLessEqual>},
    {"lessthan", 1, compares<Operator::kLess>},
    {"lower", 0, text_is<is_lower>},
    {"lt", 1, compares<Operator::kLess>},
    {"mapping", 0, is_a<const Dict*>},
    {"ne", 1, compares<Operator::kNotEqual>},
    {"none", 0, is_a<None>},
    {"number", 0, is_number},
    {"odd", 0, is_odd},
    {"sameas", 1, is_same},
    {"sequence", 0, is_sequence},
    {"string", 0, is_a<const String*>},
    {"true", 0, is_boolean<true>},
    {"undefined", 0, is_a<Undefined>},
    {"upper", 0, text_is<is_upper>},
};

}  // namespace

const Test* find_test(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kTests), std::end(kTests), [&](const Test& t) { return t.name == name; });
  return found != std::end(kTests) ? found : nullptr;
}

Result<bool> apply_test(Runtime& runtime, const Test& test, const Value& value, const CallArguments& call) {
  const Parameters parameters = {test.num_arguments > 0 ? "other" : nullptr};
  WH_ASSIGN(const Arguments arguments, bind(test.name, parameters, test.num_arguments, call));
  return test.holds(runtime, value, arguments[0]);
}

}  // namespace whippet::jinja
