// What follows an expression: attributes, subscripts, calls, filters and tests.
#include <charconv>
#include <utility>

#include "text/template_parser.h"

namespace whippet::jinja {
namespace {

using Type = ExpressionType;

}  // namespace

Result<ExpressionPtr> Parser::parse_postfix(ExpressionPtr object) {
  while (true) {
    const int line = token().line;
    WH_TRY(check_height(*object));
    if (is_operator("[")) {
      WH_ASSIGN(object, parse_subscript(std::move(object)));
    } else if (is_operator("(")) {
      auto call = make_expression(Type::kCall, line, std::move(object));
      WH_TRY(parse_arguments(*call));
      object = std::move(call);
    } else if (accept_operator(".")) {
      if (token().type == TokenType::kInteger) {
        WH_ASSIGN(ExpressionPtr index, parse_primary());
        auto item = make_expression(Type::kSubscript, line, std::move(object));
        item->add(std::move(index));
        object = std::move(item);
        continue;
      }
      auto attribute = make_expression(Type::kAttribute, line, std::move(object));
      WH_ASSIGN(attribute->name, expect_name("the name of an attribute"));
      object = std::move(attribute);
    } else {
      break;
    }
  }
  return object;
}

Result<ExpressionPtr> Parser::parse_subscript(ExpressionPtr object) {
  auto subscript = make_expression(Type::kSubscript, token().line, std::move(object));
  WH_TRY(expect_operator("["));
  ExpressionPtr bounds[3];
  size_t part = 0;
  while (!is_operator("]") && !is_operator(",")) {
    if (accept_operator(":")) {
      if (++part == 3) return unexpected("']'");
      continue;
    }
    if (bounds[part] != nullptr) return unexpected("']'");
    WH_ASSIGN(bounds[part], parse_expression());
  }
  if (is_operator(",")) return error_here(Code::kUnsupported, "several indices in one [] are not supported");
  if (part == 0 && bounds[0] == nullptr) return unexpected("an index");
  WH_TRY(expect_operator("]"));
  if (part > 0) subscript->type = Type::kSlice;
  for (size_t i = 0; i < (part > 0 ? 3 : 1); ++i) subscript->add(std::move(bounds[i]));
  return ExpressionPtr(std::move(subscript));
}

Result<ExpressionPtr> Parser::parse_filters_and_tests(ExpressionPtr value) {
  while (true) {
    const int line = token().line;
    WH_TRY(check_height(*value));
    if (accept_operator("|")) {
      WH_ASSIGN(value, parse_filter(std::move(value)));
    } else if (accept_name("is")) {
      WH_ASSIGN(value, parse_test(std::move(value)));
    } else if (is_operator("(")) {
      auto call = make_expression(Type::kCall, line, std::move(value));
      WH_TRY(parse_arguments(*call));
      value = std::move(call);
    } else {
      break;
    }
  }
  return value;
}

Result<ExpressionPtr> Parser::parse_filter(ExpressionPtr value) {
  auto filter = make_expression(Type::kFilter, token().line, std::move(value));
  WH_ASSIGN(filter->name, expect_name("the name of a filter"));
  filter->filter = find_filter(filter->name);
  if (filter->filter == nullptr) {
    --at_;
    return error_here(Code::kUnsupported, fmt::format("the filter '{}' is not supported", filter->name));
  }
  if (is_operator("(")) WH_TRY(parse_arguments(*filter));
  return ExpressionPtr(std::move(filter));
}

Result<ExpressionPtr> Parser::parse_test(ExpressionPtr value) {
  const int line = token().line;
  const bool negated = accept_name("not");
  auto test = make_expression(Type::kTest, line, std::move(value));
  WH_ASSIGN(test->name, expect_name("the name of a test"));
  test->test = find_test(test->name);
  if (test->test == nullptr) {
    --at_;
    return error_here(Code::kUnsupported, fmt::format("the test '{}' is not supported", test->name));
  }
  const TokenType next = token().type;
  const bool word = next == TokenType::kName && !is_name("else") && !is_name("or") && !is_name("and");
  const bool literal = next == TokenType::kString || next == TokenType::kInteger || next == TokenType::kFloat;
  if (is_operator("(")) {
    WH_TRY(parse_arguments(*test));
  } else if (is_name("is")) {
    return error_here(Code::kInvalidArgument, "tests cannot be chained with 'is'");
  } else if (word || literal || is_operator("[") || is_operator("{")) {
    WH_ASSIGN(ExpressionPtr argument, parse_primary());
    WH_ASSIGN(argument, parse_postfix(std::move(argument)));
    test->add(std::move(argument));
  }
  if (!negated) return ExpressionPtr(std::move(test));
  return ExpressionPtr(make_expression(Type::kNot, line, std::move(test)));
}

// (a, b, name=c). They become the last operands.
Status Parser::parse_arguments(Expression& call) {
  WH_TRY(expect_operator("("));
  for (bool first = true; !accept_operator(")"); first = false) {
    if (!first) {
      WH_TRY(expect_operator(","));
      if (accept_operator(")")) break;
    }
    if (is_operator("*") || is_operator("**")) {
      return error_here(Code::kUnsupported, "* and ** in the arguments of a call are not supported");
    }
    if (token().type == TokenType::kName && is_operator("=", 1)) {
      call.keywords.push_back(token().text);
      at_ += 2;
    } else if (!call.keywords.empty()) {
      return error_here(Code::kInvalidArgument, "an argument without a name follows one with a name");
    }
    WH_ASSIGN(ExpressionPtr argument, parse_expression());
    call.add(std::move(argument));
  }
  return {};
}

}  // namespace whippet::jinja
