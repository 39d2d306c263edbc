// A parsed template. Built by the parser, read by renderers on any thread, never changed in between.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/template_filters.h"
#include "text/template_operators.h"
#include "text/template_tests.h"
#include "text/template_value.h"

namespace whippet::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<const Expression>;
using Body = std::vector<Statement>;
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
  ExpressionType type = ExpressionType::kLiteral;
  int line = 0;
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
  (expression->operands.push_back(std::move(operands)), ...);
  return expression;
}

enum class StatementType {
  kText,          // text
  kOutput,        // {{ value }}
  kIf,            // branches, otherwise
  kFor,           // targets, value, condition, body, otherwise
  kSet,           // targets, value
  kSetAttribute,  // targets[0].text = value
  kSetBlock,      // targets or targets[0].text, value (filters, or null), body
  kScope,         // targets with defaults (of {% with %}), body
  kFilterBlock,   // value, body
  kMacro,         // text (its name), targets[0], parameters, defaults, body
  kBreak,
  kContinue,
};

struct Branch {
  ExpressionPtr condition;
  Body body;
};

struct Statement {
  StatementType type = StatementType::kText;
  int line = 0;
  std::string text;
  std::vector<Symbol> targets;  // more than one: the value is unpacked
  bool unpacks = false;         // also with one target: `set a, = x`
  ExpressionPtr value;
  ExpressionPtr condition;  // null: every item
  std::vector<Symbol> parameters;
  std::vector<std::string> parameter_names;
  std::vector<ExpressionPtr> defaults;  // one per target or parameter; may be null
  std::vector<Branch> branches;
  Body body;
  Body otherwise;
};

struct Program {
  Body body;
  std::unordered_map<std::string, Symbol> symbols;
  Symbol loop = -1;
  std::deque<std::string> texts;  // of literals; a deque does not move them
  std::deque<String> strings;
};

}  // namespace whippet::jinja
