#include "cli/structured_options.h"

#include "cli/command.h"
#include "cli/lines.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

Error wrong(const std::string& name, const char* expected) {
  return make_error(Code::kInvalidArgument, "{}: expected {}", name, expected);
}

Status read_text(const ordered_json& value, const std::string& name, std::string& out) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) return wrong(name, "a text");
  out = value.get<std::string>();
  return {};
}

Status read_json(const ordered_json& value, const std::string& name, std::string& out) {
  if (!value.is_object() && !value.is_string()) return wrong(name, "an object, or its text");
  out = value.is_string() ? value.get<std::string>() : value.dump();
  return out.empty() ? Status(wrong(name, "an object, or its text")) : Status();
}

Status read_choice(const ordered_json& value, const std::string& name, std::vector<std::string>& out) {
  if (!value.is_array() || value.empty()) return wrong(name, "a list of texts");
  for (const ordered_json& one : value) {
    if (!one.is_string()) return wrong(name, "a list of texts");
    out.push_back(one.get<std::string>());
  }
  return {};
}

// True where it asks for anything.
Result<bool> read_response_format(const ordered_json& format, StructuredOutputs& asked) {
  const std::string type = format.is_object() && format.contains("type") && format["type"].is_string()
                               ? format["type"].get<std::string>()
                               : "";
  if (type == "text") return false;
  if (type == "json_object") {
    asked.json_object = true;
  } else if (type == "json_schema" && format.contains("json_schema") && format["json_schema"].is_object() &&
             format["json_schema"].contains("schema")) {
    WH_TRY(read_json(format["json_schema"]["schema"], "response_format.json_schema.schema", asked.json));
  } else {
    return wrong(
        "response_format",
        R"({"type": "text"}, {"type": "json_object"} or {"type": "json_schema", "json_schema": {"schema": {...}}})");
  }
  return true;
}

Result<bool> read_field(const std::string& name, const ordered_json& value, StructuredOutputs& asked) {
  if (name == "response_format") return read_response_format(value, asked);
  if (name == "json_object") {
    if (!value.is_boolean()) return wrong(name, "true or false");
    asked.json_object = value.get<bool>();
    return asked.json_object;
  }
  if (name == "json_schema") {
    WH_TRY(read_json(value, name, asked.json));
  } else if (name == "structural_tag") {
    WH_TRY(read_json(value, name, asked.structural_tag));
  } else if (name == "choice") {
    WH_TRY(read_choice(value, name, asked.choice));
  } else {
    WH_TRY(read_text(value, name, name == "regex" ? asked.regex : asked.grammar));
  }
  return true;
}

}  // namespace

const std::vector<std::string>& structured_fields() {
  static const std::vector<std::string> kNames = {"json_schema", "json_object",    "regex",          "choice",
                                                  "grammar",     "structural_tag", "response_format"};
  return kNames;
}

Status read_structured_fields(const ordered_json& line, SamplingParams& params) {
  StructuredOutputs asked;
  std::string by;
  for (const std::string& name : structured_fields()) {
    if (!line.contains(name) || line[name].is_null()) continue;
    WH_ASSIGN(const bool asks, read_field(name, line[name], asked));
    if (!asks) continue;
    if (!by.empty())
      return make_error(Code::kInvalidArgument, "{} and {}: only one of them can be held to", by, name);
    by = name;
  }
  if (!by.empty()) params.structured_outputs = std::move(asked);
  return {};
}

Result<std::string> schema_text(const std::string& given) {
  if (given.starts_with('{')) return given;
  return read_all(given);
}

StructuredOptions::StructuredOptions(CLI::App& app)
    : schema_(add_value(app, "--json-schema", "FILE",
                        "a JSON schema, or the schema itself: the answer is valid by it")),
      regex_(add_value(app, "--regex", "TEXT", "a regular expression that the whole answer matches")),
      choice_(add_value(app, "--choice", "TEXT", "a text that the answer may be; given again for each")) {
  choice_->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  for (CLI::Option* option : {schema_, regex_, choice_}) option->group("Structure of the answer");
}

Status StructuredOptions::apply(SamplingParams& params) const {
  if (schema_->count() > 0) {
    WH_ASSIGN(params.structured_outputs.emplace().json, schema_text(schema_->as<std::string>()));
  }
  if (regex_->count() > 0) {
    if (!params.structured_outputs) params.structured_outputs.emplace();
    params.structured_outputs->regex = regex_->as<std::string>();
  }
  if (choice_->count() > 0) {
    if (!params.structured_outputs) params.structured_outputs.emplace();
    params.structured_outputs->choice = choice_->results();
  }
  if ((schema_->count() > 0) + (regex_->count() > 0) + (choice_->count() > 0) > 1)
    return make_error(Code::kInvalidArgument, "--json-schema, --regex and --choice: give one of them");
  return {};
}

}  // namespace whippet
