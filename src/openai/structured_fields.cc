#include "openai/structured_fields.h"

#include <array>
#include <utility>

#include "openai/field_table.h"
#include "whippet/whippet.h"

namespace whippet::openai {
namespace {

// A schema or structural tag may come as JSON or as the text of it.
Refusal read_json(const Json& value, const std::string& where, std::string& out) {
  if (value.is_string()) {
    out = value.get<std::string>();
  } else if (value.is_object() || value.is_boolean()) {
    out = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  } else {
    return wrong_type(where, "a JSON schema (an object, or its text)", value);
  }
  if (out.empty()) return wrong_value(where, fmt::format("{}: it is empty", where));
  return std::nullopt;
}

Refusal read_words(const Json& value, const std::string& where, std::string& out) {
  if (!value.is_string()) return wrong_type(where, "a text", value);
  out = value.get<std::string>();
  if (out.empty()) return wrong_value(where, fmt::format("{}: it is empty", where));
  return std::nullopt;
}

Refusal read_choice(const Json& value, const std::string& where, std::vector<std::string>& out) {
  if (!value.is_array() || value.empty()) return wrong_type(where, "a list of texts", value);
  for (const Json& one : value) {
    if (!one.is_string()) return wrong_type(where, "a list of texts", one);
    out.push_back(one.get<std::string>());
  }
  return std::nullopt;
}

// One kind of constraint by vLLM's name for it.
Refusal read_kind(std::string_view kind, const Json& value, const std::string& where,
                  StructuredOutputs& asked) {
  if (kind == "json") return read_json(value, where, asked.json);
  if (kind == "regex") return read_words(value, where, asked.regex);
  if (kind == "choice") return read_choice(value, where, asked.choice);
  if (kind == "grammar") return read_words(value, where, asked.grammar);
  if (kind == "structural_tag") return read_json(value, where, asked.structural_tag);
  if (!value.is_boolean()) return wrong_type(where, "true or false", value);
  asked.json_object = value.get<bool>();
  return std::nullopt;
}

constexpr auto kKinds =
    std::to_array<std::string_view>({"json", "json_object", "regex", "choice", "grammar", "structural_tag"});

Refusal read_json_schema(const Json& format, StructuredOutputs& asked) {
  const Json* described = field(format, "json_schema");
  if (described == nullptr)
    return missing("response_format.json_schema", "response_format: \"json_schema\" is missing");
  if (!described->is_object()) return wrong_type("response_format.json_schema", "an object", *described);
  for (const char* name : {"name", "description"})
    if (const Json* value = field(*described, name); value != nullptr && !value->is_string())
      return wrong_type(fmt::format("response_format.json_schema.{}", name), "a text", *value);
  if (const Json* strict = field(*described, "strict"); strict != nullptr && !strict->is_boolean())
    return wrong_type("response_format.json_schema.strict", "true or false", *strict);
  const Json* schema = field(*described, "schema");
  if (schema == nullptr)
    return missing("response_format.json_schema.schema",
                   "response_format.json_schema: \"schema\" is missing");
  if (!schema->is_object()) return wrong_type("response_format.json_schema.schema", "an object", *schema);
  return read_json(*schema, "response_format.json_schema.schema", asked.json);
}

Refusal read_response_format(const Json& format, StructuredOutputs& asked, std::string& param) {
  const Json* type = field(format, "type");
  if (type == nullptr) return missing("response_format.type", "response_format: \"type\" is missing");
  if (*type == "text") return std::nullopt;
  param = "response_format";
  if (*type == "json_object") {
    asked.json_object = true;
  } else if (*type == "json_schema") {
    param = "response_format.json_schema.schema";
    return read_json_schema(format, asked);
  } else if (*type == "structural_tag") {
    return read_json(format, "response_format", asked.structural_tag);
  } else {
    return wrong_value(
        "response_format.type",
        fmt::format("response_format: type is {}, but must be text, json_object, json_schema or "
                    "structural_tag",
                    shown(*type)));
  }
  return std::nullopt;
}

Refusal read_structured(const Json& body, StructuredOutputs& asked, std::string& param) {
  const Json* value = field(body, "structured_outputs");
  if (value == nullptr) return std::nullopt;
  for (const auto& [name, one] : value->items()) {
    const std::string where = "structured_outputs." + printable(name);
    if (one.is_null()) continue;
    if (std::ranges::find(kKinds, name) != kKinds.end()) {
      if (one == false && name == "json_object") continue;
      if (!param.empty())
        return wrong_value(where, fmt::format("{} and {}: only one of them can be held to", param, where));
      param = where;
      if (Refusal refusal = read_kind(name, one, where, asked)) return refusal;
    } else if (name == "disable_any_whitespace") {
      if (!one.is_boolean()) return wrong_type(where, "true or false", one);
      asked.disable_any_whitespace = one.get<bool>();
    } else if (name == "whitespace_pattern" || (name == "disable_additional_properties" && one != false)) {
      return unsupported(where, fmt::format("{} is not supported: say it in the schema", where));
    } else if (name != "disable_fallback" && name != "disable_additional_properties") {
      return wrong_value(where, fmt::format("there is no {}", where));
    }
  }
  return std::nullopt;
}

Refusal read_guided(const Json& body, StructuredOutputs& asked, std::string& param) {
  for (const std::string_view kind : {"json", "regex", "choice", "grammar"}) {
    const std::string name = fmt::format("guided_{}", kind);
    const Json* value = field(body, name);
    if (value == nullptr) continue;
    if (!param.empty())
      return wrong_value(name, fmt::format("{} and {}: only one of them can be held to", param, name));
    param = name;
    if (Refusal refusal = read_kind(kind, *value, name, asked)) return refusal;
  }
  return std::nullopt;
}

bool asks(const StructuredOutputs& asked) {
  return asked.json_object || !asked.json.empty() || !asked.regex.empty() || !asked.choice.empty() ||
         !asked.grammar.empty() || !asked.structural_tag.empty();
}

}  // namespace

Refusal read_structured_outputs(const Json& body, SamplingParams& params, std::string& param) {
  StructuredOutputs asked;
  if (const Json* format = field(body, "response_format"))
    if (Refusal refusal = read_response_format(*format, asked, param)) return refusal;
  if (Refusal refusal = read_structured(body, asked, param)) return refusal;
  if (Refusal refusal = read_guided(body, asked, param)) return refusal;
  if (!asks(asked)) return std::nullopt;
  if (asked.disable_any_whitespace && asked.json.empty() && !asked.json_object)
    return wrong_value("structured_outputs.disable_any_whitespace",
                       "structured_outputs.disable_any_whitespace belongs to json and json_object");
  params.structured_outputs = std::move(asked);
  return std::nullopt;
}

Refusal check_structured_outputs(const Context& context, const StructuredOutputs& asked,
                                 const std::string& param) {
  if (!context.prepare_grammar) return std::nullopt;
  try {
    context.prepare_grammar(asked);
    return std::nullopt;
  } catch (const Failure& failure) {
    const std::string_view what = failure.what();
    if (failure.code() == "unavailable") return submit_error(failure);
    const size_t begin = what.starts_with("structured_outputs") ? what.find(": ") + 2 : 0;
    const std::string message = fmt::format("{}: {}", param, what.substr(begin));
    return failure.code() == "unsupported" ? unsupported(param, message) : wrong_value(param, message);
  }
}

}  // namespace whippet::openai
