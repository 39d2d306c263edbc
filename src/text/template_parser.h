// Tokens to a Program. Recursive descent, bounded in depth.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/template_ast.h"
#include "text/template_limits.h"
#include "text/template_token.h"

namespace whippet::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, const TemplateLimits& limits)
      : tokens_(std::move(tokens)), limits_(limits) {}

  // Errors begin with the line. kUnsupported names what this dialect does not have.
  Result<Program> parse();

 private:
  using ParsedBody = Result<Body>;
  using Parsed = Result<ExpressionPtr>;

  // Statements: template_parser.cc.
  ParsedBody parse_body(std::initializer_list<std::string_view> ends);
  Status parse_statement(Body& body);
  Status parse_if(Statement& statement);
  Status parse_for(Statement& statement);
  Status parse_set(Statement& statement);
  Status parse_macro(Statement& statement);
  Status parse_with(Statement& statement);
  Status parse_filter_block(Statement& statement);
  Status parse_targets(Statement& statement);
  // The end of a tag, the body, and the tag that ends it.
  Status parse_until(Statement& statement, std::string_view end);

  // Expressions: template_expression.cc.
  Parsed parse_expression(bool conditional = true);
  Parsed parse_tuple(bool conditional = true);
  Parsed parse_or();
  Parsed parse_and();
  Parsed parse_not();
  Parsed parse_compare();
  Parsed parse_sum();
  Parsed parse_concat();
  Parsed parse_product();
  Parsed parse_power();
  Parsed parse_unary(bool with_filters);
  Parsed parse_primary();
  Parsed parse_parenthesised();
  Parsed parse_list();
  Parsed parse_dict();
  Parsed parse_postfix(ExpressionPtr object);
  Parsed parse_subscript(ExpressionPtr object);
  Parsed parse_filters_and_tests(ExpressionPtr value);
  Parsed parse_filter(ExpressionPtr value);
  Parsed parse_test(ExpressionPtr value);
  Status parse_arguments(Expression& call);
  template <class Operand>
  Parsed parse_chain(std::initializer_list<std::pair<std::string_view, Operator>> operators, Operand operand);

  const Token& token(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is(TokenType type, std::string_view text, size_t ahead = 0) const;
  bool is_name(std::string_view text, size_t ahead = 0) const { return is(TokenType::kName, text, ahead); }
  bool is_operator(std::string_view text, size_t ahead = 0) const {
    return is(TokenType::kOperator, text, ahead);
  }
  bool accept_name(std::string_view text);
  bool accept_operator(std::string_view text);
  Status expect_operator(std::string_view text);
  Status expect_block_end();
  Result<std::string> expect_name(const char* what);
  Symbol symbol(const std::string& name);
  Value string_literal(std::string text);
  Error unexpected(std::string_view wanted) const;
  Error error_here(Code code, const std::string& message) const;
  Error too_deep() const;
  // One level deeper; leave() undoes it. Errors end the parse, so they need not.
  Status enter();
  void leave() { --depth_; }
  // For chains that nest to the left without recursion: a.b.c, a|b|c, a if b if c.
  Status check_height(const Expression& expression) const;

  std::vector<Token> tokens_;
  const TemplateLimits& limits_;
  size_t at_ = 0;
  int depth_ = 0;
  int loops_ = 0;  // around the current place, within its macro
  Program program_;
};

}  // namespace whippet::jinja
