// A parsed template. Built by the parser, read by renderers on any thread, never changed in between.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/template_expression_node.h"
#include "text/template_value.h"

namespace whippet::jinja {

struct Statement;
using Body = std::vector<Statement>;

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
