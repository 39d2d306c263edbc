#include "openai/messages.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "openai/field_table.h"

namespace whippet::openai {
namespace {

constexpr const char* kPartKinds = "images, sound and files cannot be read: this server takes text only";

// One entry of a content that is a list.
Refusal read_part(const Json& part, const std::string& where, std::string& joined) {
  const auto append = [&](const Json& piece) {
    if (!joined.empty()) joined += '\n';
    joined += piece.get_ref<const std::string&>();
  };
  if (part.is_string()) {
    append(part);
    return std::nullopt;
  }
  if (!part.is_object()) return wrong_type(where, "a part of text", part);
  const Json* type = field(part, "type");
  if (type == nullptr || !type->is_string())
    return missing(where + ".type", fmt::format("{}: a part needs a \"type\"", where));
  const std::string& kind = type->get_ref<const std::string&>();
  const bool is_text = kind == "text" || kind == "input_text" || kind == "output_text";
  if (!is_text && kind != "refusal")
    return unsupported(where, fmt::format("{}: a part of type '{}': {}", where, printable(kind), kPartKinds));
  const char* key = is_text ? "text" : "refusal";
  const Json* piece = field(part, key);
  if (piece == nullptr) return missing(where + "." + key, fmt::format("{}: \"{}\" is missing", where, key));
  if (!piece->is_string()) return wrong_type(where + "." + key, "a text", *piece);
  append(*piece);
  return std::nullopt;
}

Refusal read_content(Json& message, const std::string& where, const std::string& role) {
  const auto found = message.find("content");
  if (found == message.end()) {
    if (role != "assistant")
      return missing(where + ".content",
                     fmt::format("{}: a message of role '{}' needs a \"content\"", where, role));
    message["content"] = "";
    return std::nullopt;
  }
  if (found->is_string()) return std::nullopt;
  if (found->is_null()) {
    *found = "";
    return std::nullopt;
  }
  if (!found->is_array()) return wrong_type(where + ".content", "a text or an array of parts", *found);
  std::string joined;
  for (size_t i = 0; i < found->size(); ++i)
    if (Refusal refusal = read_part((*found)[i], fmt::format("{}.content[{}]", where, i), joined))
      return refusal;
  *found = std::move(joined);
  return std::nullopt;
}

Refusal read_tool_calls(Json& message, const std::string& where) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end()) return std::nullopt;
  if (calls->is_null() || (calls->is_array() && calls->empty())) {
    message.erase("tool_calls");
    return std::nullopt;
  }
  if (!calls->is_array()) return wrong_type(where + ".tool_calls", "an array", *calls);
  for (size_t i = 0; i < calls->size(); ++i) {
    Json& call = (*calls)[i];
    const std::string here = fmt::format("{}.tool_calls[{}]", where, i);
    if (!call.is_object()) return wrong_type(here, "an object", call);
    const auto function = call.find("function");
    if (function == call.end() || !function->is_object())
      return missing(here + ".function", fmt::format("{}: \"function\" is missing", here));
    const Json* name = field(*function, "name");
    if (name == nullptr || !name->is_string())
      return missing(here + ".function.name", fmt::format("{}: the function's \"name\" is missing", here));
    if (name->get_ref<const std::string&>().empty())
      return wrong_value(here + ".function.name", fmt::format("{}: the function's \"name\" is empty", here));
    const auto arguments = function->find("arguments");
    if (arguments == function->end() || !arguments->is_string()) continue;
    // What a small model wrote need not be JSON; then it stays the text that it is.
    const std::string& written = arguments->get_ref<const std::string&>();
    Outcome<Json> object = read_body(written.empty() ? "{}" : written);
    if (object.index() == 0) *arguments = std::get<0>(std::move(object));
  }
  return std::nullopt;
}

// vLLM says "reasoning", others "reasoning_content", which is what templates read; most read neither.
Refusal read_reasoning(Json& message, const std::string& where) {
  const Json* reasoning = nullptr;
  for (const char* name : {"reasoning", "reasoning_content"}) {
    const Json* found = field(message, name);
    if (found != nullptr && !found->is_string()) return wrong_type(where + "." + name, "a text", *found);
    if (found != nullptr) reasoning = found;
  }
  Json text = reasoning != nullptr ? *reasoning : Json();
  message.erase("reasoning");
  message.erase("reasoning_content");
  if (!text.is_null()) message["reasoning_content"] = std::move(text);
  return std::nullopt;
}

Refusal read_message(Json& message, const std::string& where) {
  if (!message.is_object()) return wrong_type(where, "an object with \"role\" and \"content\"", message);
  const auto role = message.find("role");
  if (role == message.end()) return missing(where + ".role", fmt::format("{}: \"role\" is missing", where));
  if (!role->is_string()) return wrong_type(where + ".role", "a text", *role);
  if (*role == "developer") *role = "system";
  if (*role == "function") *role = "tool";
  const std::string name = role->get<std::string>();
  if (name != "system" && name != "user" && name != "assistant" && name != "tool")
    return wrong_value(
        where + ".role",
        fmt::format("{}: role is '{}', but must be one of system, developer, user, assistant, tool", where,
                    printable(name)));
  if (field(message, "audio") != nullptr)
    return unsupported(where + ".audio", fmt::format("{}: audio: {}", where, kPartKinds));
  if (Refusal refusal = read_content(message, where, name)) return refusal;
  if (name == "assistant")
    if (Refusal refusal = read_reasoning(message, where)) return refusal;
  if (const Json* id = field(message, "tool_call_id"); id != nullptr && !id->is_string())
    return wrong_type(where + ".tool_call_id", "a text", *id);
  return read_tool_calls(message, where);
}

}  // namespace

Refusal read_messages(Json& messages) {
  if (messages.empty()) return wrong_value("messages", "messages: there must be at least one");
  for (size_t i = 0; i < messages.size(); ++i)
    if (Refusal refusal = read_message(messages[i], fmt::format("messages[{}]", i))) return refusal;
  return std::nullopt;
}

}  // namespace whippet::openai
