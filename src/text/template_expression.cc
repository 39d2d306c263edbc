// The expressions of the grammar, loosest binding first.
#include <charconv>
#include <utility>

#include "text/template_parser.h"
#include "text/template_text.h"

namespace whippet::jinja {
namespace {

using Type = ExpressionType;

ExpressionPtr make_literal(Value value, int line) {
  auto expression = make_expression(Type::kLiteral, line);
  expression->literal = value;
  return expression;
}

}  // namespace

Result<ExpressionPtr> Parser::parse_expression(bool conditional) {
  WH_TRY(enter());
  WH_ASSIGN(ExpressionPtr value, parse_or());
  while (conditional && is_name("if")) {
    WH_TRY(check_height(*value));
    const int line = token().line;
    ++at_;
    WH_ASSIGN(ExpressionPtr condition, parse_or());
    auto choice = make_expression(Type::kConditional, line, std::move(condition), std::move(value));
    if (accept_name("else")) {
      WH_ASSIGN(ExpressionPtr otherwise, parse_expression());
      choice->add(std::move(otherwise));
    }
    value = std::move(choice);
  }
  leave();
  return value;
}

// One expression, or several with commas between them.
Result<ExpressionPtr> Parser::parse_tuple(bool conditional) {
  const int line = token().line;
  WH_ASSIGN(ExpressionPtr first, parse_expression(conditional));
  if (!is_operator(",")) return first;
  auto tuple = make_expression(Type::kTuple, line, std::move(first));
  while (accept_operator(",")) {
    const TokenType next = token().type;
    if (next == TokenType::kOutputEnd || next == TokenType::kBlockEnd || is_operator(")")) break;
    WH_ASSIGN(ExpressionPtr item, parse_expression(conditional));
    tuple->add(std::move(item));
  }
  return ExpressionPtr(std::move(tuple));
}

Result<ExpressionPtr> Parser::parse_or() {
  WH_ASSIGN(ExpressionPtr first, parse_and());
  if (!is_name("or")) return first;
  auto any = make_expression(Type::kOr, token().line, std::move(first));
  while (accept_name("or")) {
    WH_ASSIGN(ExpressionPtr next, parse_and());
    any->add(std::move(next));
  }
  return ExpressionPtr(std::move(any));
}

Result<ExpressionPtr> Parser::parse_and() {
  WH_ASSIGN(ExpressionPtr first, parse_not());
  if (!is_name("and")) return first;
  auto all = make_expression(Type::kAnd, token().line, std::move(first));
  while (accept_name("and")) {
    WH_ASSIGN(ExpressionPtr next, parse_not());
    all->add(std::move(next));
  }
  return ExpressionPtr(std::move(all));
}

Result<ExpressionPtr> Parser::parse_not() {
  const int line = token().line;
  if (!accept_name("not")) return parse_compare();
  WH_TRY(enter());
  WH_ASSIGN(ExpressionPtr operand, parse_not());
  leave();
  return ExpressionPtr(make_expression(Type::kNot, line, std::move(operand)));
}

Result<ExpressionPtr> Parser::parse_compare() {
  static constexpr std::pair<std::string_view, Operator> kOperators[] = {
      {"==", Operator::kEqual},        {"!=", Operator::kNotEqual}, {"<=", Operator::kLessEqual},
      {">=", Operator::kGreaterEqual}, {"<", Operator::kLess},      {">", Operator::kGreater}};
  const int line = token().line;
  WH_ASSIGN(ExpressionPtr first, parse_sum());
  std::unique_ptr<Expression> chain;
  while (true) {
    std::optional<Operator> found;
    for (const auto& [spelled, operation] : kOperators) {
      if (!found && accept_operator(spelled)) found = operation;
    }
    if (!found && accept_name("in")) found = Operator::kIn;
    if (!found && is_name("not") && is_name("in", 1)) {
      found = Operator::kNotIn;
      at_ += 2;
    }
    if (!found) break;
    if (chain == nullptr) chain = make_expression(Type::kCompare, line, std::move(first));
    WH_ASSIGN(ExpressionPtr next, parse_sum());
    chain->operators.push_back(*found);
    chain->add(std::move(next));
  }
  if (chain == nullptr) return first;
  return ExpressionPtr(std::move(chain));
}

template <class Operand>
Result<ExpressionPtr> Parser::parse_chain(
    std::initializer_list<std::pair<std::string_view, Operator>> operators, Operand operand) {
  const int line = token().line;
  WH_ASSIGN(ExpressionPtr first, operand());
  std::unique_ptr<Expression> chain;
  while (true) {
    std::optional<Operator> found;
    for (const auto& [spelled, operation] : operators) {
      if (!found && accept_operator(spelled)) found = operation;
    }
    if (!found) break;
    if (chain == nullptr) chain = make_expression(Type::kArithmetic, line, std::move(first));
    WH_ASSIGN(ExpressionPtr next, operand());
    chain->operators.push_back(*found);
    chain->add(std::move(next));
  }
  if (chain == nullptr) return first;
  return ExpressionPtr(std::move(chain));
}

Result<ExpressionPtr> Parser::parse_sum() {
  return parse_chain({{"+", Operator::kAdd}, {"-", Operator::kSubtract}}, [this] { return parse_concat(); });
}

Result<ExpressionPtr> Parser::parse_concat() {
  WH_ASSIGN(ExpressionPtr first, parse_product());
  if (!is_operator("~")) return first;
  auto parts = make_expression(Type::kConcat, token().line, std::move(first));
  while (accept_operator("~")) {
    WH_ASSIGN(ExpressionPtr next, parse_product());
    parts->add(std::move(next));
  }
  return ExpressionPtr(std::move(parts));
}

Result<ExpressionPtr> Parser::parse_product() {
  return parse_chain({{"*", Operator::kMultiply},
                      {"//", Operator::kFloorDivide},
                      {"/", Operator::kDivide},
                      {"%", Operator::kModulo}},
                     [this] { return parse_power(); });
}

Result<ExpressionPtr> Parser::parse_power() {
  return parse_chain({{"**", Operator::kPower}}, [this] { return parse_unary(true); });
}

Result<ExpressionPtr> Parser::parse_unary(bool with_filters) {
  const int line = token().line;
  ExpressionPtr value;
  if (is_operator("-") || is_operator("+")) {
    const Type type = is_operator("-") ? Type::kNegative : Type::kPositive;
    ++at_;
    WH_TRY(enter());
    WH_ASSIGN(ExpressionPtr operand, parse_unary(false));
    leave();
    value = make_expression(type, line, std::move(operand));
  } else {
    WH_ASSIGN(value, parse_primary());
  }
  WH_ASSIGN(value, parse_postfix(std::move(value)));
  return with_filters ? parse_filters_and_tests(std::move(value)) : Result<ExpressionPtr>(std::move(value));
}

Result<ExpressionPtr> Parser::parse_primary() {
  const Token& start = token();
  const int line = start.line;
  if (start.type == TokenType::kString) {
    std::string text;
    for (; token().type == TokenType::kString; ++at_) text += token().text;
    return make_literal(string_literal(std::move(text)), line);
  }
  if (start.type == TokenType::kInteger) {
    int64_t integer = 0;
    const char* end = start.text.data() + start.text.size();
    if (std::from_chars(start.text.data(), end, integer).ec != std::errc()) {
      return error_here(Code::kInvalidArgument, fmt::format("the integer {} is beyond 64 bits", start.text));
    }
    ++at_;
    return make_literal(Integer{integer}, line);
  }
  if (start.type == TokenType::kFloat) {
    double number = 0;
    if (std::from_chars(start.text.data(), start.text.data() + start.text.size(), number).ec != std::errc()) {
      return error_here(Code::kInvalidArgument, fmt::format("the number {} is beyond a double", start.text));
    }
    ++at_;
    return make_literal(number, line);
  }
  if (is_operator("(")) return parse_parenthesised();
  if (is_operator("[")) return parse_list();
  if (is_operator("{")) return parse_dict();
  const Result<std::string> expected = expect_name("an expression");
  if (!expected.ok()) return expected.error();
  const std::string& name = *expected;
  if (name == "true" || name == "True") return make_literal(true, line);
  if (name == "false" || name == "False") return make_literal(false, line);
  if (name == "none" || name == "None") return make_literal(None{}, line);
  auto variable = make_expression(Type::kVariable, line);
  variable->symbol = symbol(name);
  variable->name = name;
  return ExpressionPtr(std::move(variable));
}

Result<ExpressionPtr> Parser::parse_parenthesised() {
  const int line = token().line;
  WH_TRY(expect_operator("("));
  if (accept_operator(")")) return ExpressionPtr(make_expression(Type::kTuple, line));
  WH_ASSIGN(ExpressionPtr value, parse_tuple());
  WH_TRY(expect_operator(")"));
  return value;
}

Result<ExpressionPtr> Parser::parse_list() {
  auto list = make_expression(Type::kList, token().line);
  WH_TRY(expect_operator("["));
  while (!accept_operator("]")) {
    if (!list->operands.empty()) {
      WH_TRY(expect_operator(","));
      if (accept_operator("]")) break;
    }
    WH_ASSIGN(ExpressionPtr item, parse_expression());
    list->add(std::move(item));
  }
  return ExpressionPtr(std::move(list));
}

Result<ExpressionPtr> Parser::parse_dict() {
  auto dict = make_expression(Type::kDict, token().line);
  WH_TRY(expect_operator("{"));
  while (!accept_operator("}")) {
    if (!dict->operands.empty()) {
      WH_TRY(expect_operator(","));
      if (accept_operator("}")) break;
    }
    WH_ASSIGN(ExpressionPtr key, parse_expression());
    WH_TRY(expect_operator(":"));
    WH_ASSIGN(ExpressionPtr value, parse_expression());
    dict->add(std::move(key));
    dict->add(std::move(value));
  }
  return ExpressionPtr(std::move(dict));
}

}  // namespace whippet::jinja
