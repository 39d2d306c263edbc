#include "openai/tool_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "openai/field_table.h"

namespace whippet::openai {
namespace {

constexpr size_t kMostTools = 128;
constexpr size_t kLongestName = 64;

bool is_function_name(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

Refusal check_parameters(const Json& function, const std::string& where) {
  const Json* parameters = field(function, "parameters");
  if (parameters == nullptr) return std::nullopt;
  if (!parameters->is_object())
    return wrong_type(where + ".parameters", "a JSON schema, which is an object", *parameters);
  const Json* type = field(*parameters, "type");
  if (type == nullptr || *type == "object") return std::nullopt;
  return wrong_value(where + ".parameters.type",
                     fmt::format("{}.parameters: the schema's type is {}, but arguments are an \"object\"",
                                 where, shown(*type)));
}

// A function of `tools`; adds its name.
Refusal read_function(const Json& function, const std::string& where, std::vector<std::string>& names) {
  const Json* name = field(function, "name");
  if (name == nullptr)
    return missing(where + ".name", fmt::format("{}: the function's \"name\" is missing", where));
  if (!name->is_string()) return wrong_type(where + ".name", "a text", *name);
  const std::string& spelled = name->get_ref<const std::string&>();
  if (!is_function_name(spelled))
    return wrong_value(where + ".name",
                       fmt::format("{}.name is {}, but must be 1 to {} letters, digits, _ or -", where,
                                   shown(*name), kLongestName));
  if (std::find(names.begin(), names.end(), spelled) != names.end())
    return wrong_value(
        where + ".name",
        fmt::format("{}.name is {}, as an earlier tool's is: names must differ", where, shown(*name)));
  if (const Json* description = field(function, "description"); description && !description->is_string())
    return wrong_type(where + ".description", "a text", *description);
  if (const Json* strict = field(function, "strict"); strict && !strict->is_boolean())
    return wrong_type(where + ".strict", "true or false", *strict);
  names.push_back(spelled);
  return check_parameters(function, where);
}

Refusal read_tools(const Json& tools, std::vector<std::string>& names) {
  if (tools.size() > kMostTools)
    return wrong_value("tools",
                       fmt::format("tools: there are {}, but {} are the most", tools.size(), kMostTools));
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string where = fmt::format("tools[{}]", i);
    if (!tools[i].is_object()) return wrong_type(where, "an object", tools[i]);
    const Json* type = field(tools[i], "type");
    if (type == nullptr) return missing(where + ".type", fmt::format("{}: \"type\" is missing", where));
    if (*type != "function")
      return unsupported(where + ".type",
                         fmt::format("{}: type is {}, but only \"function\" is there: this server "
                                     "runs no tools of its own",
                                     where, shown(*type)));
    const Json* function = field(tools[i], "function");
    if (function == nullptr)
      return missing(where + ".function", fmt::format("{}: \"function\" is missing", where));
    if (!function->is_object()) return wrong_type(where + ".function", "an object", *function);
    if (Refusal refusal = read_function(*function, where + ".function", names)) return refusal;
  }
  return std::nullopt;
}

// {"type": "function", "function": {"name": "f"}}
Refusal read_named_choice(const Json& choice, ToolFields& fields) {
  const Json* type = field(choice, "type");
  if (type == nullptr) return missing("tool_choice.type", "tool_choice: \"type\" is missing");
  if (*type != "function")
    return unsupported("tool_choice.type",
                       fmt::format("tool_choice: type is {}, but only \"function\" is there", shown(*type)));
  const Json* function = field(choice, "function");
  const Json* name = function != nullptr && function->is_object() ? field(*function, "name") : nullptr;
  if (name == nullptr || !name->is_string())
    return missing("tool_choice.function.name", "tool_choice: the function's \"name\" is missing");
  const std::string& spelled = name->get_ref<const std::string&>();
  if (std::find(fields.names.begin(), fields.names.end(), spelled) == fields.names.end())
    return wrong_value("tool_choice.function.name",
                       fmt::format("tool_choice: there is no {} among the tools ({})", shown(*name),
                                   fields.names.empty() ? "none are given"
                                                        : fmt::format("{}", fmt::join(fields.names, ", "))));
  fields.choice = ToolChoice::kNamed;
  fields.names = {spelled};
  fields.several = false;
  return std::nullopt;
}

Refusal read_choice(const Json& choice, ToolFields& fields) {
  if (choice.is_object()) return read_named_choice(choice, fields);
  if (!choice.is_string())
    return wrong_type("tool_choice", "\"none\", \"auto\", \"required\" or an object", choice);
  if (choice == "none") {
    fields.choice = ToolChoice::kNone;
  } else if (choice == "required") {
    if (fields.names.empty())
      return wrong_value("tool_choice", "tool_choice: a call is required, but there are no \"tools\"");
    fields.choice = ToolChoice::kRequired;
  } else if (choice != "auto") {
    return wrong_value("tool_choice", fmt::format("tool_choice is {}, but must be \"none\", \"auto\", "
                                                  "\"required\", or an object that names a function",
                                                  shown(choice)));
  }
  return std::nullopt;
}

}  // namespace

Refusal read_tool_fields(const Json& body, ToolFields& fields) {
  const Json* tools = field(body, "tools");
  if (tools != nullptr)
    if (Refusal refusal = read_tools(*tools, fields.names)) return refusal;
  fields.several = flag(body, "parallel_tool_calls", true);
  fields.choice = fields.names.empty() ? ToolChoice::kNone : ToolChoice::kAuto;
  if (const Json* choice = field(body, "tool_choice"))
    if (Refusal refusal = read_choice(*choice, fields)) return refusal;
  // A model that may not call a tool is not shown any.
  if (fields.choice == ToolChoice::kNone) {
    fields.names.clear();
  } else {
    fields.tools = tools;
  }
  return std::nullopt;
}

}  // namespace whippet::openai
