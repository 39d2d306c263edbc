// The expressions of the Renderer.
#include "text/template_access.h"
#include "text/template_builtins.h"
#include "text/template_compare.h"
#include "text/template_format.h"
#include "text/template_methods.h"
#include "text/template_operators.h"
#include "text/template_renderer.h"

namespace whippet::jinja {

Result<Value> Renderer::evaluate(const Expression& expression) {
  WH_TRY(runtime_.step());
  switch (expression.type) {
    case ExpressionType::kLiteral:
      return expression.literal;
    case ExpressionType::kVariable:
      return variable(expression);
    case ExpressionType::kCaptured:
      return *captured_;
    default:
      break;
  }
  const Nesting nesting(runtime_);
  WH_TRY(nesting.status());
  return evaluate_nested(expression);
}

Result<Value> Renderer::evaluate_nested(const Expression& expression) {
  switch (expression.type) {
    case ExpressionType::kList:
    case ExpressionType::kTuple:
      return sequence(expression);
    case ExpressionType::kDict:
      return dict(expression);
    case ExpressionType::kAnd:
    case ExpressionType::kOr:
      return logical(expression);
    case ExpressionType::kConditional:
      return conditional(expression);
    case ExpressionType::kArithmetic:
      return arithmetic(expression);
    case ExpressionType::kConcat:
      return concat(expression);
    case ExpressionType::kCompare:
      return compare_chain(expression);
    case ExpressionType::kSlice:
      return slice(expression);
    case ExpressionType::kCall:
      return call(expression);
    case ExpressionType::kFilter:
      return filter(expression);
    case ExpressionType::kTest:
      return test(expression);
    default:
      break;
  }
  WH_ASSIGN(const Value first, evaluate(*expression.operands[0]));
  line_ = expression.line;
  switch (expression.type) {
    case ExpressionType::kNot:
      return Value(!is_true(first));
    case ExpressionType::kNegative:
      return negate(first);
    case ExpressionType::kAttribute:
      return attribute(runtime_, first, expression.name);
    case ExpressionType::kPositive: {
      if (as_number(first)) return calculate(runtime_, Operator::kAdd, Integer{0}, first);
      return type_error("{} is no number", type_name(first));
    }
    default:
      break;
  }
  WH_ASSIGN(const Value key, evaluate(*expression.operands[1]));
  line_ = expression.line;
  return subscript(runtime_, first, key);
}

Result<Value> Renderer::variable(const Expression& expression) {
  WH_ASSIGN(const Value* found, look_up(expression.symbol));
  if (found != nullptr) return *found;
  if (const auto builtin = find_builtin(expression.name)) return Value(*builtin);
  return runtime_.undefined(nullptr, expression.name);
}

Result<Value> Renderer::sequence(const Expression& expression) {
  ListBuilder items(runtime_);
  for (const ExpressionPtr& operand : expression.operands) {
    WH_ASSIGN(const Value item, evaluate(*operand));
    WH_TRY(items.add(item));
  }
  const bool tuple = expression.type == ExpressionType::kTuple;
  return tuple ? items.finish(SequenceType::kTuple, "tuple") : items.finish();
}

Result<Value> Renderer::dict(const Expression& expression) {
  std::vector<DictEntry> entries;
  for (size_t i = 0; i < expression.operands.size(); i += 2) {
    WH_ASSIGN(const Value key, evaluate(*expression.operands[i]));
    WH_ASSIGN(const Value value, evaluate(*expression.operands[i + 1]));
    entries.push_back({key, value});
  }
  line_ = expression.line;
  return runtime_.dict(entries);
}

// `and` gives the first operand that is false, `or` the first that is true, or else the last.
Result<Value> Renderer::logical(const Expression& expression) {
  const bool decides = expression.type == ExpressionType::kOr;
  Value value;
  for (const ExpressionPtr& operand : expression.operands) {
    WH_ASSIGN(value, evaluate(*operand));
    if (is_true(value) == decides) break;
  }
  return value;
}

Result<Value> Renderer::conditional(const Expression& expression) {
  WH_ASSIGN(const Value condition, evaluate(*expression.operands[0]));
  if (is_true(condition)) return evaluate(*expression.operands[1]);
  if (expression.operands.size() > 2) return evaluate(*expression.operands[2]);
  return runtime_.undefined(nullptr, "the else of an inline if");
}

Result<Value> Renderer::arithmetic(const Expression& expression) {
  WH_ASSIGN(Value value, evaluate(*expression.operands[0]));
  std::optional<TextBuilder> text;  // value, while strings are added to it: copies each of them once
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    WH_ASSIGN(const Value next, evaluate(*expression.operands[i + 1]));
    line_ = expression.line;
    const String* more = as_string(next);
    const bool appends = more != nullptr && expression.operators[i] == Operator::kAdd;
    if (appends && (text || as_string(value) != nullptr)) {
      if (!text) WH_TRY(text.emplace(runtime_).append(*as_string(value)));
      WH_TRY(text->append(*more));
      continue;
    }
    if (text) {
      WH_ASSIGN(value, text->finish());
      text.reset();
    }
    WH_ASSIGN(value, calculate(runtime_, expression.operators[i], value, next));
  }
  return text ? text->finish() : Result<Value>(value);
}

Result<Value> Renderer::concat(const Expression& expression) {
  TextBuilder text(runtime_);
  for (const ExpressionPtr& operand : expression.operands) {
    WH_ASSIGN(const Value value, evaluate(*operand));
    line_ = expression.line;
    WH_TRY(append_str(runtime_, text, value));
  }
  return text.finish();
}

Result<Value> Renderer::compare_chain(const Expression& expression) {
  WH_ASSIGN(Value left, evaluate(*expression.operands[0]));
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    WH_ASSIGN(const Value right, evaluate(*expression.operands[i + 1]));
    line_ = expression.line;
    WH_ASSIGN(const bool true_so_far, holds(runtime_, expression.operators[i], left, right));
    if (!true_so_far) return Value(false);
    left = right;
  }
  return Value(true);
}

Result<Value> Renderer::slice(const Expression& expression) {
  WH_ASSIGN(const Value object, evaluate(*expression.operands[0]));
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    const ExpressionPtr& bound = expression.operands[i + 1];
    if (bound == nullptr) continue;
    WH_ASSIGN(bounds[i], evaluate(*bound));
  }
  line_ = expression.line;
  return slice_of(runtime_, object, {bounds[0], bounds[1], bounds[2]});
}

Result<CallArguments> Renderer::arguments_of(const Expression& expression) {
  CallArguments arguments;
  const size_t positional = expression.operands.size() - expression.keywords.size();
  for (size_t i = 1; i < expression.operands.size(); ++i) {
    WH_ASSIGN(const Value value, evaluate(*expression.operands[i]));
    if (i < positional) {
      arguments.positional.push_back(value);
    } else {
      arguments.keywords.emplace_back(expression.keywords[i - positional], value);
    }
  }
  line_ = expression.line;
  return arguments;
}

Result<Value> Renderer::call(const Expression& expression) {
  const Expression& called = *expression.operands[0];
  WH_ASSIGN(const Value callee, evaluate(called));
  WH_ASSIGN(const CallArguments arguments, arguments_of(expression));
  if (const auto* method = std::get_if<const Method*>(&callee))
    return call_method(runtime_, **method, arguments);
  if (const auto* macro = std::get_if<const Macro*>(&callee)) return call_macro(**macro, arguments);
  if (const auto* builtin = std::get_if<Builtin>(&callee)) return call_builtin(runtime_, *builtin, arguments);
  if (const auto* undefined = std::get_if<Undefined>(&callee)) {
    if (called.type == ExpressionType::kVariable && is_other_builtin(called.name)) {
      return make_error(Code::kUnsupported, "the function {}() is not supported", called.name);
    }
    return type_error("{}", describe(*undefined));
  }
  return type_error("{} cannot be called", type_name(callee));
}

Result<Value> Renderer::call_macro(const Macro& macro, const CallArguments& arguments) {
  const Statement& definition = *macro.definition;
  const size_t count = definition.parameters.size();
  if (arguments.positional.size() > count) {
    return type_error("{}() takes at most {} arguments, not {}", definition.text, count,
                      arguments.positional.size());
  }
  std::vector<std::optional<Value>> given(count);
  for (size_t i = 0; i < arguments.positional.size(); ++i) given[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.keywords) {
    const auto found = std::find(definition.parameter_names.begin(), definition.parameter_names.end(), name);
    if (found == definition.parameter_names.end()) {
      return type_error("{}() has no parameter '{}'", definition.text, name);
    }
    std::optional<Value>& place = given[static_cast<size_t>(found - definition.parameter_names.begin())];
    if (place) return type_error("{}() got '{}' twice", definition.text, name);
    place = value;
  }
  Scope* const outer = std::exchange(scope_, runtime_.make(Scope{macro.scope}));
  const auto run = [&]() -> Result<Value> {
    for (size_t i = 0; i < count; ++i) {
      Value value = runtime_.undefined(nullptr, definition.parameter_names[i]);
      if (given[i]) {
        value = *given[i];
      } else if (definition.defaults[i] != nullptr) {
        WH_ASSIGN(value, evaluate(*definition.defaults[i]));
      }
      WH_TRY(assign(definition.parameters[i], value));
    }
    return capture(definition.body);
  };
  Result<Value> result = run();
  scope_ = outer;
  if (result.ok()) line_ = definition.line;
  return result;
}

Result<Value> Renderer::filter(const Expression& expression) {
  WH_ASSIGN(const Value value, evaluate(*expression.operands[0]));
  WH_ASSIGN(const CallArguments arguments, arguments_of(expression));
  return apply_filter(runtime_, *expression.filter, value, arguments);
}

Result<Value> Renderer::test(const Expression& expression) {
  WH_ASSIGN(const Value value, evaluate(*expression.operands[0]));
  WH_ASSIGN(const CallArguments arguments, arguments_of(expression));
  WH_ASSIGN(const bool holds_true, apply_test(runtime_, *expression.test, value, arguments));
  return Value(holds_true);
}

}  // namespace whippet::jinja
