#include "text/template_renderer.h"

#include <utility>

#include "text/template_builtins.h"
#include "text/template_compare.h"
#include "text/template_format.h"

namespace whippet::jinja {

class Renderer::Inside {
 public:
  Inside(Renderer& renderer, Scope* scope)
      : renderer_(renderer), outer_(std::exchange(renderer.scope_, scope)) {}
  ~Inside() { renderer_.scope_ = outer_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Renderer& renderer_;
  Scope* outer_;
};

Renderer::Renderer(const Program& program, Runtime& runtime)
    : program_(program), runtime_(runtime), variables_(program.symbols.size()), output_(runtime) {}

Status Renderer::run() {
  const Result<Flow> end = execute(program_.body);
  return end.ok() ? Status() : end.error();
}

Result<Renderer::Flow> Renderer::execute(const Body& body) {
  const Nesting nesting(runtime_);
  WH_TRY(nesting.status());
  for (const Statement& statement : body) {
    line_ = statement.line;
    WH_TRY(runtime_.step());
    WH_ASSIGN(const Flow flow, execute(statement));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Renderer::Flow> Renderer::execute(const Statement& statement) {
  switch (statement.type) {
    case StatementType::kText:
      WH_TRY(out_->append(statement.text));
      break;
    case StatementType::kOutput: {
      WH_ASSIGN(const Value value, evaluate(*statement.value));
      WH_TRY(append_str(runtime_, *out_, value));
      break;
    }
    case StatementType::kIf:
      return execute_if(statement);
    case StatementType::kFor:
      return execute_for(statement);
    case StatementType::kSet:
    case StatementType::kSetAttribute:
      WH_TRY(execute_set(statement));
      break;
    case StatementType::kSetBlock:
      WH_TRY(execute_set_block(statement));
      break;
    case StatementType::kScope:
      return execute_scope(statement);
    case StatementType::kFilterBlock:
      WH_TRY(execute_filter_block(statement));
      break;
    case StatementType::kMacro:
      WH_TRY(assign(statement.targets.front(), runtime_.make(Macro{&statement, scope_})));
      break;
    case StatementType::kBreak:
      return Flow::kBreak;
    case StatementType::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Result<Renderer::Flow> Renderer::execute_if(const Statement& statement) {
  for (const Branch& branch : statement.branches) {
    WH_ASSIGN(const Value condition, evaluate(*branch.condition));
    if (is_true(condition)) return execute(branch.body);
  }
  return execute(statement.otherwise);
}

// What the loop goes through: all items, or those that the condition holds for.
Result<std::span<const Value>> Renderer::selected_items(const Statement& statement) {
  WH_ASSIGN(const Value iterable, evaluate(*statement.value));
  line_ = statement.line;
  WH_ASSIGN(const std::span<const Value> items, iterate(runtime_, iterable));
  if (statement.condition == nullptr) return items;
  ListBuilder selected(runtime_);
  for (const Value& item : items) {
    const Inside inside(*this, runtime_.make(Scope{scope_}));
    WH_TRY(assign_all(statement, item));
    WH_ASSIGN(const Value condition, evaluate(*statement.condition));
    if (is_true(condition)) WH_TRY(selected.add(item));
  }
  WH_ASSIGN(const Value list, selected.finish());
  return as_sequence(list)->items;
}

Result<Renderer::Flow> Renderer::execute_for(const Statement& statement) {
  WH_ASSIGN(const std::span<const Value> items, selected_items(statement));
  if (items.empty()) {
    const Inside inside(*this, runtime_.make(Scope{scope_}));
    return execute(statement.otherwise);
  }
  Loop* const loop = runtime_.make(Loop{items});
  for (; loop->index < items.size(); ++loop->index) {
    const Inside inside(*this, runtime_.make(Scope{scope_}));
    WH_TRY(runtime_.step());
    WH_TRY(assign(program_.loop, loop));
    WH_TRY(assign_all(statement, items[loop->index]));
    WH_ASSIGN(const Flow flow, execute(statement.body));
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNext;
}

Result<Renderer::Flow> Renderer::execute_scope(const Statement& statement) {
  std::vector<Value> values;
  for (const ExpressionPtr& expression : statement.defaults) {
    WH_ASSIGN(const Value value, evaluate(*expression));
    values.push_back(value);
  }
  const Inside inside(*this, runtime_.make(Scope{scope_}));
  for (size_t i = 0; i < values.size(); ++i) WH_TRY(assign(statement.targets[i], values[i]));
  return execute(statement.body);
}

Status Renderer::assign_all(const Statement& statement, const Value& value) {
  if (!statement.unpacks) return assign(statement.targets.front(), value);
  if (const auto* undefined = std::get_if<Undefined>(&value)) return type_error("{}", describe(*undefined));
  WH_ASSIGN(const std::span<const Value> items, iterate(runtime_, value));
  if (items.size() != statement.targets.size()) {
    return type_error("{} names for {} values", statement.targets.size(), items.size());
  }
  for (size_t i = 0; i < items.size(); ++i) WH_TRY(assign(statement.targets[i], items[i]));
  return {};
}

Status Renderer::execute_set(const Statement& statement) {
  WH_ASSIGN(const Value value, evaluate(*statement.value));
  line_ = statement.line;
  if (statement.type == StatementType::kSetAttribute) return execute_set_attribute(statement, value);
  return assign_all(statement, value);
}

Status Renderer::execute_set_block(const Statement& statement) {
  WH_ASSIGN(Value value, capture(statement.body));
  WH_ASSIGN(value, filter_captured(statement, value));
  line_ = statement.line;
  if (!statement.text.empty()) return execute_set_attribute(statement, value);
  return assign_all(statement, value);
}

Status Renderer::execute_set_attribute(const Statement& statement, const Value& value) {
  WH_ASSIGN(const Value* found, look_up(statement.targets.front()));
  const auto* space = found != nullptr ? std::get_if<Namespace*>(found) : nullptr;
  if (space == nullptr) return type_error("'{}' is set on what is no namespace", statement.text);
  return set_attribute(runtime_, **space, statement.text, value);
}

Status Renderer::execute_filter_block(const Statement& statement) {
  WH_ASSIGN(const Value text, capture(statement.body));
  WH_ASSIGN(const Value value, filter_captured(statement, text));
  return append_str(runtime_, *out_, value);
}

// What a block prints, as a string. Its variables are its own.
Result<Value> Renderer::capture(const Body& body) {
  TextBuilder text(runtime_);
  const Inside inside(*this, runtime_.make(Scope{scope_}));
  TextBuilder* const outer = std::exchange(out_, &text);
  const Result<Flow> end = execute(body);
  out_ = outer;
  if (!end.ok()) return end.error();
  return text.finish();
}

Result<Value> Renderer::filter_captured(const Statement& statement, const Value& text) {
  if (statement.value == nullptr) return text;
  const Value* const outer = std::exchange(captured_, &text);
  Result<Value> value = evaluate(*statement.value);
  captured_ = outer;
  return value;
}

Status Renderer::assign(Symbol symbol, const Value& value) {
  if (scope_ == nullptr) {
    variables_[static_cast<size_t>(symbol)] = value;
    return {};
  }
  int64_t passed = 0;
  for (Variable* variable = scope_->first; variable != nullptr; variable = variable->next, ++passed) {
    if (variable->symbol != symbol) continue;
    variable->value = value;
    return runtime_.step(passed / 8);
  }
  scope_->first = runtime_.make(Variable{symbol, value, scope_->first});
  return runtime_.step(passed / 8);
}

Result<const Value*> Renderer::look_up(Symbol symbol) {
  int64_t passed = 0;
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent, ++passed) {
    for (const Variable* variable = scope->first; variable != nullptr; variable = variable->next, ++passed) {
      if (variable->symbol != symbol) continue;
      WH_TRY(runtime_.step(passed / 8));
      return &variable->value;
    }
  }
  WH_TRY(runtime_.step(passed / 8));
  const std::optional<Value>& own = variables_[static_cast<size_t>(symbol)];
  return own ? &*own : nullptr;
}

}  // namespace whippet::jinja
