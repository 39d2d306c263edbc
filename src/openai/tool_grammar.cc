#include "openai/tool_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "openai/field_table.h"
#include "openai/structured_fields.h"

namespace whippet::openai {
namespace {

Json schema_of(const Json& function) {
  if (const Json* parameters = field(function, "parameters")) {
    Json schema = *parameters;
    if (!schema.contains("type")) schema["type"] = "object";
    return schema;
  }
  return {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
}

// One tag a function that may be called.
Json tags_of(const ToolFields& fields, const ToolFormat& format) {
  Json tags = Json::array();
  for (const Json& tool : *fields.tools) {
    const Json& function = tool["function"];
    const std::string name = function["name"].get<std::string>();
    if (std::find(fields.names.begin(), fields.names.end(), name) == fields.names.end()) continue;
    std::string begin, end = "}";
    if (!format.bare) begin.append(format.open).append(format.between);
    begin += "{\"name\": \"" + name + "\", \"" + std::string(format.arguments) + "\": ";
    // A token that ends the answer closes the call as well.
    if (format.end_token.empty()) end.append(format.between).append(format.close);
    tags.push_back({{"type", "tag"},
                    {"begin", begin},
                    {"content", {{"type", "json_schema"}, {"json_schema", schema_of(function)}}},
                    {"end", end}});
  }
  return tags;
}

bool any_strict(const Json& tools) {
  return std::any_of(tools.begin(), tools.end(), [](const Json& tool) {
    const Json* strict = field(tool["function"], "strict");
    return strict != nullptr && *strict == true;
  });
}

// The asked-for answer as a part of a structural tag; null: it cannot be one.
Json format_of(const StructuredOutputs& asked) {
  if (asked.disable_any_whitespace) return nullptr;
  if (asked.json_object) return {{"type", "json_schema"}, {"json_schema", {{"type", "object"}}}};
  if (!asked.regex.empty()) return {{"type", "regex"}, {"pattern", asked.regex}};
  if (!asked.grammar.empty()) return {{"type", "grammar"}, {"grammar", asked.grammar}};
  if (asked.json.empty()) return nullptr;
  Json schema = Json::parse(asked.json, nullptr, false);
  if (schema.is_discarded()) return nullptr;
  return {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
}

void set_format(const Json& format, SamplingParams& params) {
  StructuredOutputs outputs;
  outputs.structural_tag = Json{{"type", "structural_tag"}, {"format", format}}.dump();
  params.structured_outputs = std::move(outputs);
}

}  // namespace

void add_tool_grammar(const ToolFields& fields, const ToolFormat& format, bool keeps_open,
                      SamplingParams& params) {
  if (fields.tools == nullptr) return;
  const bool several = fields.several && !format.separator.empty();
  Json calls = {{"type", "tags_with_separator"},
                {"tags", tags_of(fields, format)},
                {"separator", several ? std::string(format.separator) : "\n"},
                {"at_least_one", true},
                {"stop_after_first", !several}};
  if (fields.choice != ToolChoice::kAuto) return set_format(calls, params);
  if (params.structured_outputs) {
    const Json answer = format_of(*params.structured_outputs);
    if (!answer.is_null())
      set_format({{"type", "or"}, {"elements", Json::array({std::move(calls), answer})}}, params);
  } else if (any_strict(*fields.tools) && keeps_open && !format.bare) {
    set_format({{"type", "triggered_tags"},
                {"triggers", Json::array({std::string(format.open)})},
                {"tags", calls["tags"]},
                {"at_least_one", false},
                {"stop_after_first", !several}},
               params);
  }
}

Refusal check_tool_grammar(const Context& context, const ToolFields& fields, const StructuredOutputs& asked) {
  Refusal whole = check_structured_outputs(context, asked, "tools");
  if (!whole || fields.tools == nullptr) return whole;
  for (size_t i = 0; i < fields.tools->size(); ++i) {
    StructuredOutputs one;
    one.json = schema_of((*fields.tools)[i]["function"]).dump();
    if (Refusal refusal =
            check_structured_outputs(context, one, fmt::format("tools[{}].function.parameters", i)))
      return refusal;
  }
  return whole;
}

}  // namespace whippet::openai
