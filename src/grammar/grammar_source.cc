#include "grammar/grammar_source.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "grammar/grammar_checks.h"
#include "grammar/regex_grammar.h"
#include "grammar/rules.h"
#include "grammar/schema_grammar.h"
#include "grammar/structural_tag.h"

namespace whippet::grammar {
namespace {

constexpr size_t kMostChoices = 1000;
constexpr size_t kMostChoiceBytes = 64 * 1024;

Error named(const char* kind, const Error& error) {
  return make_error(error.code, "structured_outputs.{}: {}", kind, error.message);
}

Status check_kinds(const StructuredOutputs& asked) {
  const int kinds = !asked.json.empty() + asked.json_object + !asked.regex.empty() + !asked.choice.empty() +
                    !asked.grammar.empty() + !asked.structural_tag.empty();
  if (kinds != 1)
    return make_error(
        Code::kInvalidArgument,
        "structured_outputs: expected exactly one of json, json_object, regex, choice, grammar and "
        "structural_tag, found {}",
        kinds);
  if (asked.disable_any_whitespace && asked.json.empty() && !asked.json_object)
    return make_error(Code::kInvalidArgument,
                      "structured_outputs: disable_any_whitespace belongs to json and json_object");
  return {};
}

Result<GrammarSource> of_choice(const std::vector<std::string>& texts) {
  size_t bytes = 0;
  std::vector<std::string> parts;
  for (const std::string& text : texts) {
    bytes += text.size();
    if (text.find('\0') != std::string::npos)
      return make_error(Code::kInvalidArgument, "structured_outputs.choice: a text with a NUL in it");
    parts.push_back(literal(text));
  }
  if (texts.size() > kMostChoices || bytes > kMostChoiceBytes)
    return make_error(Code::kInvalidArgument,
                      "structured_outputs.choice: {} texts of {} bytes, at most {} of {} bytes are taken",
                      texts.size(), bytes, kMostChoices, kMostChoiceBytes);
  return GrammarSource{GrammarSource::Kind::kEbnf, "root ::= " + choices(parts) + "\n"};
}

}  // namespace

Result<GrammarSource> grammar_source(const StructuredOutputs& asked) {
  WH_TRY(check_kinds(asked));
  Rules rules(kMostRules, kMostGrammarBytes);
  const bool white_space = !asked.disable_any_whitespace;
  if (!asked.json.empty()) {
    const Result<std::string> root = schema_to_grammar(asked.json, white_space, rules);
    if (!root.ok()) return named("json", root.error());
    return GrammarSource{GrammarSource::Kind::kEbnf, rules.text(*root)};
  }
  if (asked.json_object)
    return GrammarSource{GrammarSource::Kind::kEbnf, rules.text(object_grammar(white_space, rules))};
  if (!asked.regex.empty()) {
    const Result<std::string> root = regex_to_grammar(asked.regex, RegexPlace::kText);
    if (!root.ok()) return named("regex", root.error());
    return GrammarSource{GrammarSource::Kind::kEbnf, rules.text(*root)};
  }
  if (!asked.choice.empty()) return of_choice(asked.choice);
  if (!asked.grammar.empty()) {
    const Status status = check_ebnf(asked.grammar);
    if (!status.ok()) return named("grammar", status.error());
    return GrammarSource{GrammarSource::Kind::kEbnf, asked.grammar};
  }
  Result<std::string> tag = checked_structural_tag(asked.structural_tag);
  if (!tag.ok()) return named("structural_tag", tag.error());
  return GrammarSource{GrammarSource::Kind::kStructuralTag, std::move(tag).value()};
}

}  // namespace whippet::grammar
