#include "grammar/structural_tag.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_nesting.h"
#include "grammar/grammar_checks.h"
#include "grammar/regex_grammar.h"
#include "grammar/rules.h"
#include "grammar/schema_grammar.h"

namespace whippet::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostText = 256 * 1024;
constexpr int kMostDepth = 40;  // of formats in formats

Json ebnf(const std::string& text) { return {{"type", "grammar"}, {"grammar", text}}; }

class Walk {
 public:
  Status format(Json& value, int depth) {
    if (depth > kMostDepth) return make_error(Code::kInvalidArgument, "more than {} levels deep", kMostDepth);
    if (value.is_array()) {
      for (Json& one : value) WH_TRY(format(one, depth + 1));
      return {};
    }
    if (!value.is_object()) return {};
    const std::string type = text_at(value, "type");
    if (type == "json_schema") return schema(value);
    if (type == "regex") return regex(value);
    if (type == "grammar") {
      WH_TRY(check_ebnf(text_at(value, "grammar")));
      return count(text_at(value, "grammar").size());
    }
    if (type == "qwen_xml_parameter" || (type == "repeat" && too_often(value)))
      return make_error(Code::kInvalidArgument, "'{}' is not supported here", type);
    for (auto& [name, inner] : value.items())
      if (inner.is_structured()) WH_TRY(format(inner, depth + 1));
    return {};
  }

 private:
  static std::string text_at(const Json& value, const char* name) {
    return value.contains(name) && value.at(name).is_string() ? value.at(name).get<std::string>() : "";
  }

  static bool too_often(const Json& value) {
    for (const char* name : {"min", "max"})
      if (value.contains(name) && value.at(name).is_number() && value.at(name).get<double>() > kMostRepeats)
        return true;
    return false;
  }

  Status count(size_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= kMostGrammarBytes) return {};
    return make_error(Code::kInvalidArgument, "its grammars have more than {} bytes", kMostGrammarBytes);
  }

  Status schema(Json& value) {
    if (!value.contains("json_schema")) return make_error(Code::kInvalidArgument, "json_schema is missing");
    for (const auto& [name, more] : value.items())
      if (name != "type" && name != "json_schema" && !(name == "style" && more == "json"))
        return make_error(Code::kInvalidArgument, "'{}' of a json_schema is not supported", name);
    Rules rules(kMostRules, kMostGrammarBytes);
    WH_ASSIGN(const std::string root, schema_to_grammar(value.at("json_schema").dump(), true, rules));
    value = ebnf(rules.text(root));
    return count(text_at(value, "grammar").size());
  }

  Status regex(Json& value) {
    WH_ASSIGN(const std::string root, regex_to_grammar(text_at(value, "pattern"), RegexPlace::kText));
    value = ebnf("root ::= " + root + "\n");
    return count(root.size());
  }

  size_t bytes_ = 0;
};

// {"structures": [{"begin", "schema", "end"}], "triggers"} in the words of today.
Json from_older(const Json& older) {
  Json tags = Json::array();
  for (const Json& one : older.at("structures")) {
    Json schema = one.is_object() && one.contains("schema") ? one.at("schema") : Json();
    if (schema.is_string()) schema = Json::parse(schema.get<std::string>(), nullptr, false);
    Json tag = {{"type", "tag"}, {"content", {{"type", "json_schema"}, {"json_schema", schema}}}};
    for (const char* name : {"begin", "end"})
      if (one.is_object() && one.contains(name)) tag[name] = one.at(name);
    tags.push_back(std::move(tag));
  }
  return {
      {"type", "structural_tag"},
      {"format",
       {{"type", "triggered_tags"}, {"triggers", older.value("triggers", Json::array())}, {"tags", tags}}}};
}

}  // namespace

Result<std::string> checked_structural_tag(std::string_view text) {
  if (text.size() > kMostText)
    return make_error(Code::kInvalidArgument, "{} bytes, at most {} are taken", text.size(), kMostText);
  if (json_nesting(text) > 4 * kMostSchemaDepth) return make_error(Code::kInvalidArgument, "nested too deep");
  Json tag = Json::parse(text, nullptr, false);
  if (!tag.is_object()) return make_error(Code::kInvalidArgument, "expected a JSON object");
  if (tag.contains("structures") && tag.at("structures").is_array()) tag = from_older(tag);
  if (!tag.contains("format")) return make_error(Code::kInvalidArgument, "'format' is missing");
  WH_TRY(Walk().format(tag.at("format"), 0));
  return tag.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace whippet::grammar
