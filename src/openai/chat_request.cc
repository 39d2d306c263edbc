#include "openai/chat_request.h"

#include <fmt/format.h>

#include <tuple>
#include <utility>

#include "openai/answer_format.h"
#include "openai/exchange_impl.h"
#include "openai/field_table.h"
#include "openai/messages.h"
#include "openai/request_fields.h"
#include "openai/tool_grammar.h"
#include "openai/tool_prompt.h"
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
  // Templates know thinking as on or off.
  const Json* kwargs = field(body, "chat_template_kwargs");
  const Json* effort = field(body, "reasoning_effort");
  if (effort != nullptr && !(kwargs != nullptr && kwargs->contains("enable_thinking")))
    variables["enable_thinking"] = *effort != "none";
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

Refusal check_choice(const Context& context, const ToolFields& tools) {
  if (tools.choice == ToolChoice::kAuto && !context.auto_tool_choice)
    return unsupported("tool_choice",
                       "tool_choice: \"auto\", which is the default, needs a server that runs with "
                       "--enable-auto-tool-choice");
  const bool forced = tools.choice == ToolChoice::kRequired || tools.choice == ToolChoice::kNamed;
  if (forced && context.tool_call_parser == "none")
    return unsupported("tool_choice",
                       "tool_choice: a call cannot be forced, since this server reads none "
                       "(--tool-call-parser none)");
  return std::nullopt;
}

// Tools, and the calls and results of turns before, as the template takes them.
const ToolFormat* show_tools(const Context& context, const Json& body, const ToolFields& tools,
                             Json& messages, Json& variables) {
  if (tools.tools == nullptr && !have_tool_turns(messages)) return nullptr;
  const ToolSupport support = tool_support(context, text(body, "prompt_template"));
  if (!support.in_template) {
    write_tools_as_text(messages, tools.tools, *support.format);
  } else if (tools.tools != nullptr) {
    variables["tools"] = *tools.tools;
  }
  return support.format;
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
  if (Refusal refusal = check_choice(context, chat.tools)) return std::move(*refusal);
  SamplingParams params = fields.params;
  AnswerFormat format = answer_format(context, chat, params);
  format.hides_thinking = !flag(body, "include_reasoning", true);
  if (params.structured_outputs && params.structured_outputs != fields.params.structured_outputs)
    if (Refusal refusal = check_tool_grammar(context, chat.tools, *params.structured_outputs))
      return std::move(*refusal);
  if (Refusal refusal = fit_prompt(context, fields, context.default_max_tokens, "messages", chat.ids, params))
    return std::move(*refusal);
  auto exchange = std::make_unique<Exchange::Impl>(context, kChat, std::move(id), std::move(fields));
  exchange->has_logprobs = params.logprobs.has_value();
  exchange->format = std::move(format);
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
  Outcome<Json> read_variables = template_variables(context, body);
  if (auto* error = std::get_if<ApiError>(&read_variables)) return std::move(*error);
  Json& variables = std::get<0>(read_variables);
  RenderedChat rendered;
  if (Refusal refusal = read_tool_fields(body, rendered.tools)) return std::move(*refusal);
  if (Refusal refusal = read_messages(*messages)) return std::move(*refusal);
  const Json& last = messages->back();
  if (last["role"] == "assistant") rendered.last_message = last["content"].get<std::string>();
  rendered.tool_format = show_tools(context, body, rendered.tools, *messages, variables);
  Request request;
  request.messages_json = messages->dump();
  *messages = nullptr;
  request.template_variables_json = variables.dump();
  request.prompt_template = text(body, "prompt_template");
  try {
    std::string prompt;
    std::tie(prompt, rendered.ids) = context.render(request);
    const bool goes_on = flag(body, "continue_final_message", false) && !rendered.last_message.empty();
    rendered.thinking = thinking_of(context, goes_on ? rendered.last_message : prompt, goes_on);
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
