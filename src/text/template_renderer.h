// Runs a Program over the variables of one render. One thread, used once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/template_ast.h"
#include "text/template_call.h"
#include "text/template_runtime.h"
#include "text/template_text.h"
#include "text/template_value.h"

namespace whippet::jinja {

struct Variable {
  Symbol symbol;
  Value value;
  Variable* next;
};
// The variables of one iteration, macro call or block. Macros keep the scope that they were defined in.
struct Scope {
  Scope* parent = nullptr;
  Variable* first = nullptr;
};
struct Macro {
  const Statement* definition;
  Scope* scope;  // null: the template's own
};

class Renderer {
 public:
  Renderer(const Program& program, Runtime& runtime);

  void set_variable(Symbol symbol, const Value& value) { variables_[static_cast<size_t>(symbol)] = value; }
  Status run();
  MarkedText take_output() { return output_.take(); }
  int line() const { return line_; }  // where the render is, or where it failed

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class Inside;  // enters a scope and leaves it

  // Statements: template_renderer.cc.
  Result<Flow> execute(const Body& body);
  Result<Flow> execute(const Statement& statement);
  Result<Flow> execute_if(const Statement& statement);
  Result<Flow> execute_for(const Statement& statement);
  Result<Flow> execute_scope(const Statement& statement);
  Result<std::span<const Value>> selected_items(const Statement& statement);
  Status assign_all(const Statement& statement, const Value& value);
  Status execute_set(const Statement& statement);
  Status execute_set_block(const Statement& statement);
  Status execute_set_attribute(const Statement& statement, const Value& value);
  Status execute_filter_block(const Statement& statement);
  Result<Value> capture(const Body& body);
  Result<Value> filter_captured(const Statement& statement, const Value& text);
  Status assign(Symbol symbol, const Value& value);
  Result<const Value*> look_up(Symbol symbol);

  // Expressions: template_evaluate.cc.
  Result<Value> evaluate(const Expression& expression);
  Result<Value> evaluate_nested(const Expression& expression);
  Result<Value> variable(const Expression& expression);
  Result<Value> sequence(const Expression& expression);
  Result<Value> dict(const Expression& expression);
  Result<Value> logical(const Expression& expression);
  Result<Value> conditional(const Expression& expression);
  Result<Value> arithmetic(const Expression& expression);
  Result<Value> concat(const Expression& expression);
  Result<Value> compare_chain(const Expression& expression);
  Result<Value> slice(const Expression& expression);
  Result<Value> call(const Expression& expression);
  Result<Value> call_macro(const Macro& macro, const CallArguments& arguments);
  Result<Value> filter(const Expression& expression);
  Result<Value> test(const Expression& expression);
  Result<CallArguments> arguments_of(const Expression& expression);

  const Program& program_;
  Runtime& runtime_;
  std::vector<std::optional<Value>> variables_;  // of the template itself, by symbol
  Scope* scope_ = nullptr;                       // null: the template's own
  TextBuilder output_;
  TextBuilder* out_ = &output_;
  const Value* captured_ = nullptr;
  int line_ = 1;
};

}  // namespace whippet::jinja
