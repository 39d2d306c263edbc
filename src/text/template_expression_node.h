// The expressions of a parsed template: a tree, built by the parser and never changed afterwards.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/template_filters.h"
#include "text/template_operators.h"
#include "text/template_tests.h"
#include "text/template_value.h"

namespace whippet::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;
// Variables are numbers in the order in which a template first names them.
using Symbol = int;

enum class ExpressionType {
  kLiteral,     // literal
  kVariable,    // name, symbol
  kCaptured,    // the text of the {% set %} or {% filter %} block that this filters
  kList,        // operands
  kTuple,       // operands
  kDict,        // operands: key, value, key, value, ...
  kNot,         // operands[0]
  kNegative,    // operands[0]
  kPositive,    // operands[0]
  kArithmetic,  // operands[0] operators[0] operands[1] operators[1] ..., all of one precedence, from the left
  kConcat,      // operands[0] ~ operands[1] ~ ...
  kCompare,     // operands[0] operators[0] operands[1] and operands[1] operators[1] operands[2] and ...
  kAnd,         // operands
  kOr,          // operands
  kConditional,  // operands[1] if operands[0] else operands[2], which may be missing
  kAttribute,    // operands[0].name
  kSubscript,    // operands[0][operands[1]]
  kSlice,        // operands[0][operands[1]:operands[2]:operands[3]], where those may be null
  kCall,         // operands[0](operands[1], ...)
  kFilter,       // operands[0] | name(operands[1], ...)
  kTest,         // operands[0] is name(operands[1], ...)
};

struct Expression {
  // Null stands for what was left out.
  void add(ExpressionPtr operand) {
    if (operand != nullptr) height = std::max(height, operand->height + 1);
    operands.push_back(std::move(operand));
  }

  ExpressionType type = ExpressionType::kLiteral;
  int line = 0;
  int height = 0;  // levels below this one
  std::vector<ExpressionPtr> operands;
  std::vector<Operator> operators;
  std::vector<std::string> keywords;  // names of the last arguments of a call, filter or test
  std::string name;
  Symbol symbol = -1;
  Value literal;
  const Filter* filter = nullptr;
  const Test* test = nullptr;
};

template <class... Operands>
std::unique_ptr<Expression> make_expression(ExpressionType type, int line, Operands... operands) {
  auto expression = std::make_unique<Expression>();
  expression->type = type;
  expression->line = line;
  (expression->add(std::move(operands)), ...);
  return expression;
}

}  // namespace whippet::jinja
