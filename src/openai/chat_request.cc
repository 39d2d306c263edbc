#include "openai/chat_request.h"

#include <fmt/format.h>

#include <utility>

#include "openai/exchange_impl.h"
#include "openai/field_table.h"
#include "openai/messages.h"
#include "openai/request_fields.h"
#include "whippet/whippet.h"

namespace whippet::openai {
namespace {

// What a template may not be told: the first would make text of the request a control token, the others have
// fields of their own.
Refusal check_kwargs(const Json& kwargs) {
  for (const char* name : {"bos_token", "eos_token", "pad_token", "unk_token", "messages", "tools",
                           "add_generation_prompt", "continue_final_message", "chat_template"})
    if (kwargs.contains(name))
      return wrong_value(
          std::string("chat_template_kwargs.") + name,
          fmt::format("chat_template_kwargs: {} is no variable that a request sets there", name));
  return std::nullopt;
}

// The server's variables, the request's over them, and what has a field of its own.
Outcome<Json> template_variables(const Context& context, const Json& body) {
  Json variables = Json::object();
  if (!context.chat_template_kwargs_json.empty()) {
    Outcome<Json> defaults = read_body(context.chat_template_kwargs_json);
    if (auto* error = std::get_if<ApiError>(&defaults))
      return http_error(500, "the server's chat_template_kwargs: " + error->message);
    variables = std::get<0>(std::move(defaults));
  }
  if (const Json* kwargs = field(body, "chat_template_kwargs")) {
    if (Refusal refusal = check_kwargs(*kwargs)) return std::move(*refusal);
    for (const auto& [name, value] : kwargs->items()) variables[name] = value;
  }
  for (const char* name : {"documents", "reasoning_effort"})
    if (const Json* value = field(body, name)) variables[name] = *value;
  const Json* choice = field(body, "tool_choice");
  if (choice != nullptr)
    if (Refusal refusal = check_tool_choice(*choice)) return std::move(*refusal);
  if (const Json* tools = field(body, "tools")) {
    if (Refusal refusal = check_tools(*tools)) return std::move(*refusal);
    // A model that may not call a tool is not shown any.
    if (!tools->empty() && !(choice != nullptr && *choice == "none")) variables["tools"] = *tools;
  }
  const bool goes_on = flag(body, "continue_final_message", false);
  const bool begins = flag(body, "add_generation_prompt", !goes_on);
  if (goes_on && begins)
    return wrong_value(
        "continue_final_message",
        "continue_final_message and add_generation_prompt exclude each other: the answer goes on with "
        "the last message, or begins a new one");
  variables["add_generation_prompt"] = begins;
  if (goes_on) variables["continue_final_message"] = true;
  return variables;
}

Outcome<std::unique_ptr<Exchange>> read_chat(const Context& context, Json body, std::string id) {
  RequestFields fields;
  if (Refusal refusal = read_request_fields(context, body, kChat, fields)) return std::move(*refusal);
  if (Refusal refusal = read_chat_lengths(body, fields.params)) return std::move(*refusal);
  if (Refusal refusal = read_chat_logprobs(body, fields.params)) return std::move(*refusal);
  if (Refusal refusal = check_ranges(context, fields, kChat)) return std::move(*refusal);
  Outcome<RenderedChat> rendered = render_chat(context, body);
  if (auto* error = std::get_if<ApiError>(&rendered)) return std::move(*error);
  RenderedChat& chat = std::get<0>(rendered);
  SamplingParams params = fields.params;
  if (Refusal refusal = fit_prompt(context, fields, context.default_max_tokens, "messages", chat.ids, params))
    return std::move(*refusal);
  auto exchange = std::make_unique<Exchange::Impl>(context, kChat, std::move(id), std::move(fields));
  exchange->has_logprobs = params.logprobs.has_value();
  exchange->add_prompt(std::move(chat.ids), exchange->fields.echo ? std::move(chat.last_message) : "",
                       std::move(params));
  return std::make_unique<Exchange>(std::move(exchange));
}

}  // namespace

Outcome<RenderedChat> render_chat(const Context& context, Json& body) {
  const auto messages = body.find("messages");
  if (messages == body.end() || messages->is_null())
    return missing("messages", "messages: an array of messages is missing");
  if (flag(body, "add_special_tokens", false))
    return unsupported(
        "add_special_tokens",
        "add_special_tokens: a chat has the special tokens that its template writes; leave it out");
  if (Refusal refusal = read_messages(*messages)) return std::move(*refusal);
  Outcome<Json> variables = template_variables(context, body);
  if (auto* error = std::get_if<ApiError>(&variables)) return std::move(*error);
  RenderedChat rendered;
  const Json& last = messages->back();
  if (last["role"] == "assistant") rendered.last_message = last["content"].get<std::string>();
  Request request;
  request.messages_json = messages->dump();
  *messages = nullptr;
  request.template_variables_json = std::get<0>(variables).dump();
  request.prompt_template = text(body, "prompt_template");
  try {
    rendered.ids = context.render(request).second;
  } catch (const Failure& failure) {
    return refused(make_error(Code::kInvalidArgument, "{}", failure.what()), "messages");
  }
  return rendered;
}

Outcome<std::unique_ptr<Exchange>> parse_chat(const Context& context, std::string_view body, std::string id) {
  Outcome<Json> read = read_body(body);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  return read_chat(context, std::get<0>(std::move(read)), std::move(id));
}

}  // namespace whippet::openai
