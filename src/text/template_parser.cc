#include "text/template_parser.h"

#include <algorithm>
#include <utility>

#include "text/template_text.h"

namespace whippet::jinja {
namespace {

bool is_other_tag(std::string_view name) {
  static constexpr std::string_view kTags[] = {"autoescape", "block", "call",    "debug",  "do",
                                               "extends",    "from",  "include", "import", "trans"};
  return std::find(std::begin(kTags), std::end(kTags), name) != std::end(kTags);
}

Statement& add_statement(Body& body, StatementType type, int line) {
  Statement& statement = body.emplace_back();
  statement.type = type;
  statement.line = line;
  return statement;
}

}  // namespace

Result<Program> Parser::parse() {
  program_.loop = symbol("loop");
  WH_ASSIGN(program_.body, parse_body({}));
  return std::move(program_);
}

// Until a tag with one of these names, whose name is then the next token, or the end of the template.
Result<Body> Parser::parse_body(std::initializer_list<std::string_view> ends) {
  WH_TRY(enter());
  Body body;
  while (token().type != TokenType::kEnd) {
    const TokenType type = token().type;
    const int line = token().line;
    if (type == TokenType::kText) {
      Statement& text = add_statement(body, StatementType::kText, line);
      text.text = std::move(tokens_[at_++].text);
    } else if (type == TokenType::kOutputBegin) {
      ++at_;
      Statement& output = add_statement(body, StatementType::kOutput, line);
      WH_ASSIGN(output.value, parse_tuple());
      if (token().type != TokenType::kOutputEnd) return unexpected("'}}'");
      ++at_;
    } else {
      ++at_;
      const bool ended =
          std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return is_name(end); });
      if (ended) {
        leave();
        return body;
      }
      WH_TRY(parse_statement(body));
      WH_TRY(expect_block_end());
    }
  }
  if (ends.size() > 0) {
    return error_here(Code::kInvalidArgument, fmt::format("'{}' is missing", *(ends.end() - 1)));
  }
  leave();
  return body;
}

Status Parser::parse_statement(Body& body) {
  Statement statement;
  statement.line = token().line;
  WH_ASSIGN(const std::string tag, expect_name("the name of a tag"));
  if (tag == "if") {
    WH_TRY(parse_if(statement));
  } else if (tag == "for") {
    WH_TRY(parse_for(statement));
  } else if (tag == "set") {
    WH_TRY(parse_set(statement));
  } else if (tag == "macro") {
    WH_TRY(parse_macro(statement));
  } else if (tag == "with") {
    WH_TRY(parse_with(statement));
  } else if (tag == "filter") {
    WH_TRY(parse_filter_block(statement));
  } else if (tag == "generation") {
    statement.type = StatementType::kScope;
    WH_TRY(parse_until(statement, "endgeneration"));
  } else if (tag == "break" || tag == "continue") {
    statement.type = tag == "break" ? StatementType::kBreak : StatementType::kContinue;
    if (loops_ == 0) return error_here(Code::kInvalidArgument, fmt::format("'{}' outside of a loop", tag));
  } else {
    --at_;
    if (is_other_tag(tag))
      return error_here(Code::kUnsupported, fmt::format("{{% {} %}} is not supported", tag));
    return error_here(Code::kInvalidArgument, fmt::format("unexpected tag '{}'", tag));
  }
  body.push_back(std::move(statement));
  return {};
}

Status Parser::parse_until(Statement& statement, std::string_view end) {
  WH_TRY(expect_block_end());
  WH_ASSIGN(statement.body, parse_body({end}));
  ++at_;
  return {};
}

Status Parser::parse_if(Statement& statement) {
  statement.type = StatementType::kIf;
  do {
    WH_ASSIGN(ExpressionPtr condition, parse_tuple(false));
    WH_TRY(expect_block_end());
    WH_ASSIGN(Body body, parse_body({"elif", "else", "endif"}));
    statement.branches.push_back({std::move(condition), std::move(body)});
  } while (accept_name("elif"));
  if (accept_name("else")) {
    WH_TRY(expect_block_end());
    WH_ASSIGN(statement.otherwise, parse_body({"endif"}));
  }
  ++at_;
  return {};
}

Status Parser::parse_for(Statement& statement) {
  statement.type = StatementType::kFor;
  WH_TRY(parse_targets(statement));
  if (!accept_name("in")) return unexpected("'in'");
  WH_ASSIGN(statement.value, parse_tuple(false));
  if (accept_name("if")) {
    WH_ASSIGN(statement.condition, parse_expression());
  }
  if (is_name("recursive")) return error_here(Code::kUnsupported, "a recursive loop is not supported");
  WH_TRY(expect_block_end());
  ++loops_;
  WH_ASSIGN(statement.body, parse_body({"else", "endfor"}));
  --loops_;
  if (accept_name("else")) {
    WH_TRY(expect_block_end());
    WH_ASSIGN(statement.otherwise, parse_body({"endfor"}));
  }
  ++at_;
  return {};
}

// a | a, b | (a, b)
Status Parser::parse_targets(Statement& statement) {
  const bool parenthesised = accept_operator("(");
  do {
    if (is_operator("(")) return error_here(Code::kUnsupported, "names in nested brackets are not supported");
    if (!statement.targets.empty() && (token().type != TokenType::kName || is_name("in"))) break;
    WH_ASSIGN(const std::string name, expect_name("the name of a variable"));
    statement.targets.push_back(symbol(name));
    statement.unpacks = statement.unpacks || is_operator(",");
  } while (accept_operator(","));
  return parenthesised ? expect_operator(")") : Status();
}

Status Parser::parse_set(Statement& statement) {
  if (token().type == TokenType::kName && is_operator(".", 1)) {
    statement.type = StatementType::kSetAttribute;
    statement.targets.push_back(symbol(token().text));
    at_ += 2;
    WH_ASSIGN(statement.text, expect_name("the name of an attribute"));
  } else {
    statement.type = StatementType::kSet;
    WH_TRY(parse_targets(statement));
  }
  if (accept_operator("=")) {
    WH_ASSIGN(statement.value, parse_tuple());
    return {};
  }
  if (statement.unpacks) return unexpected("'='");
  statement.type = StatementType::kSetBlock;
  if (is_operator("|")) {
    auto captured = std::make_unique<Expression>();
    captured->type = ExpressionType::kCaptured;
    WH_ASSIGN(statement.value, parse_filters_and_tests(std::move(captured)));
  }
  return parse_until(statement, "endset");
}

Status Parser::parse_filter_block(Statement& statement) {
  statement.type = StatementType::kFilterBlock;
  auto captured = std::make_unique<Expression>();
  captured->type = ExpressionType::kCaptured;
  WH_ASSIGN(statement.value, parse_filter(std::move(captured)));
  WH_ASSIGN(statement.value, parse_filters_and_tests(std::move(statement.value)));
  return parse_until(statement, "endfilter");
}

Status Parser::parse_macro(Statement& statement) {
  statement.type = StatementType::kMacro;
  WH_ASSIGN(statement.text, expect_name("the name of a macro"));
  statement.targets.push_back(symbol(statement.text));
  WH_TRY(expect_operator("("));
  while (!accept_operator(")")) {
    if (!statement.parameters.empty()) WH_TRY(expect_operator(","));
    WH_ASSIGN(std::string name, expect_name("the name of a parameter"));
    statement.parameters.push_back(symbol(name));
    statement.parameter_names.push_back(std::move(name));
    ExpressionPtr otherwise;
    if (accept_operator("=")) {
      WH_ASSIGN(otherwise, parse_expression());
    } else if (!statement.defaults.empty() && statement.defaults.back() != nullptr) {
      return error_here(Code::kInvalidArgument, "a parameter without a default follows one with a default");
    }
    statement.defaults.push_back(std::move(otherwise));
  }
  const int outer_loops = std::exchange(loops_, 0);
  WH_TRY(parse_until(statement, "endmacro"));
  loops_ = outer_loops;
  return {};
}

Status Parser::parse_with(Statement& statement) {
  statement.type = StatementType::kScope;
  while (token().type != TokenType::kBlockEnd) {
    if (!statement.targets.empty()) WH_TRY(expect_operator(","));
    WH_ASSIGN(const std::string name, expect_name("the name of a variable"));
    WH_TRY(expect_operator("="));
    WH_ASSIGN(ExpressionPtr value, parse_expression());
    statement.targets.push_back(symbol(name));
    statement.defaults.push_back(std::move(value));
  }
  return parse_until(statement, "endwith");
}

bool Parser::is(TokenType type, std::string_view text, size_t ahead) const {
  return token(ahead).type == type && token(ahead).text == text;
}

bool Parser::accept_name(std::string_view text) {
  const bool found = is_name(text);
  at_ += found ? 1 : 0;
  return found;
}

bool Parser::accept_operator(std::string_view text) {
  const bool found = is_operator(text);
  at_ += found ? 1 : 0;
  return found;
}

Status Parser::expect_operator(std::string_view text) {
  return accept_operator(text) ? Status() : unexpected(fmt::format("'{}'", text));
}

Status Parser::expect_block_end() {
  if (token().type != TokenType::kBlockEnd) return unexpected("'%}'");
  ++at_;
  return {};
}

Result<std::string> Parser::expect_name(const char* what) {
  if (token().type != TokenType::kName) return unexpected(what);
  return std::move(tokens_[at_++].text);
}

Symbol Parser::symbol(const std::string& name) {
  return program_.symbols.try_emplace(name, static_cast<Symbol>(program_.symbols.size())).first->second;
}

Value Parser::string_literal(std::string text) {
  const std::string& kept = program_.texts.emplace_back(std::move(text));
  return &program_.strings.emplace_back(String{kept, {}, count_chars(kept)});
}

Error Parser::unexpected(std::string_view wanted) const {
  std::string found;
  switch (token().type) {
    case TokenType::kEnd:
      found = "the end of the template";
      break;
    case TokenType::kOutputEnd:
      found = "'}}'";
      break;
    case TokenType::kBlockEnd:
      found = "'%}'";
      break;
    case TokenType::kString:
      found = "a string";
      break;
    default:
      found = fmt::format("'{}'", token().text);
  }
  return error_here(Code::kInvalidArgument, fmt::format("expected {}, found {}", wanted, found));
}

Error Parser::error_here(Code code, const std::string& message) const {
  return make_error(code, "line {}: {}", token().line, message);
}

Error Parser::too_deep() const {
  return error_here(Code::kResourceExhausted, fmt::format("nested deeper than {} levels", limits_.max_depth));
}

Status Parser::enter() { return ++depth_ <= limits_.max_depth ? Status() : too_deep(); }

Status Parser::check_height(const Expression& expression) const {
  return expression.height <= limits_.max_depth ? Status() : too_deep();
}

}  // namespace whippet::jinja
