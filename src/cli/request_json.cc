#include "cli/request_json.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/sampling_fields.h"
#include "base/fields.h"
#include "cli/lines.h"
#include "cli/structured_options.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

// Fields of a line that are no sampling parameter.
const std::vector<std::string>& own_fields() {
  static const std::vector<std::string> names = {
      "prompt", "messages", "prompt_ids", "tools", "chat_template_kwargs", "priority", "timeout_s", "id"};
  return names;
}

Status read_prompt(const ordered_json& object, Request& request) {
  const int kinds = object.contains("prompt") + object.contains("messages") + object.contains("prompt_ids");
  if (kinds != 1)
    return make_error(Code::kInvalidArgument, "expected {}one of prompt, messages and prompt_ids",
                      kinds == 0 ? "" : "exactly ");
  if (object.contains("messages")) {
    if (!object["messages"].is_array())
      return make_error(Code::kInvalidArgument, "messages: expected a list");
    request.messages_json = object["messages"].dump();
  } else if (object.contains("prompt_ids")) {
    WH_ASSIGN(request.prompt_token_ids, read_ids(object, "prompt_ids"));
    if (request.prompt_token_ids.empty())
      return make_error(Code::kInvalidArgument, "prompt_ids: expected at least one token id");
  } else if (object["prompt"].is_string()) {
    request.prompt = object["prompt"].get<std::string>();
  } else {
    return make_error(Code::kInvalidArgument, "prompt: expected a text");
  }
  return {};
}

Status read_template_variables(const ordered_json& object, Request& request) {
  ordered_json variables = ordered_json::object();
  if (object.contains("chat_template_kwargs")) variables = object["chat_template_kwargs"];
  if (!variables.is_object())
    return make_error(Code::kInvalidArgument, "chat_template_kwargs: expected an object");
  if (object.contains("tools")) variables["tools"] = object["tools"];
  if (variables.empty()) return {};
  if (request.messages_json.empty())
    return make_error(Code::kInvalidArgument, "tools and chat_template_kwargs need messages");
  request.template_variables_json = variables.dump();
  return {};
}

Status read_limits(const ordered_json& object, Request& request) {
  if (object.contains("priority")) {
    const ordered_json& value = object["priority"];
    if (!value.is_number_integer() || value.get<int64_t>() < -1000 || value.get<int64_t>() > 1000)
      return make_error(Code::kInvalidArgument, "priority: expected a whole number from -1000 to 1000");
    request.priority = value.get<int32_t>();
  }
  if (object.contains("timeout_s")) {
    const ordered_json& value = object["timeout_s"];
    if (!value.is_number() || !(value.get<double>() >= 0))
      return make_error(Code::kInvalidArgument, "timeout_s: expected a number of seconds, 0 for none");
    request.timeout_s = value.get<double>();
  }
  return {};
}

Error unknown_field(const std::string& name) {
  std::vector<std::string> names = own_fields();
  for (const std::string& field : sampling_field_names()) names.push_back(field);
  for (const std::string& field : structured_fields()) names.push_back(field);
  return make_error(Code::kInvalidArgument, "unknown field '{}'{}", name, did_you_mean(name, names));
}

}  // namespace

Result<LineRequest> read_request(const std::string& line, const Request& base) {
  WH_ASSIGN(const ordered_json object, parse_object(line));
  LineRequest result{.request = base, .id = object.value("id", ordered_json())};
  for (const auto& [name, value] : object.items()) {
    if (std::find(own_fields().begin(), own_fields().end(), name) != own_fields().end()) continue;
    if (std::ranges::find(structured_fields(), name) != structured_fields().end()) continue;
    if (!is_sampling_field(name)) return unknown_field(name);
    WH_TRY(set_sampling_field(result.request.params, name, nlohmann::json(value)));
  }
  WH_TRY(read_structured_fields(object, result.request.params));
  WH_TRY(read_prompt(object, result.request));
  WH_TRY(read_template_variables(object, result.request));
  WH_TRY(read_limits(object, result.request));
  return result;
}

}  // namespace whippet
