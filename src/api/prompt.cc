#include "api/prompt.h"

#include <algorithm>
#include <utility>

#include "api/json_file.h"

namespace whippet {
namespace {

Result<TemplateVariables> messages_of(const Request& request) {
  if (!request.messages_json.empty()) {
    auto parsed = parse_json<TemplateVariables>(request.messages_json);
    if (!parsed.ok()) return make_error(Code::kInvalidArgument, "messages: {}", parsed.error().message);
    return parsed;
  }
  TemplateVariables messages = TemplateVariables::array();
  for (const Message& message : request.messages)
    messages.push_back({{"role", message.role}, {"content", message.content}});
  return messages;
}

Result<TemplateVariables> variables_of(const Request& request) {
  TemplateVariables variables = TemplateVariables::object();
  if (!request.template_variables_json.empty()) {
    auto parsed = parse_json<TemplateVariables>(request.template_variables_json);
    if (!parsed.ok() || !parsed->is_object())
      return make_error(Code::kInvalidArgument, "template variables: {}",
                        parsed.ok() ? "expected an object" : parsed.error().message);
    variables = std::move(*parsed);
  }
  WH_ASSIGN(variables["messages"], messages_of(request));
  return variables;
}

Status check_messages(const TemplateVariables& variables) {
  const auto messages = variables.find("messages");
  if (messages == variables.end() || !messages->is_array() || messages->empty())
    return make_error(Code::kInvalidArgument, "messages: expected a list with at least one message");
  for (size_t i = 0; i < messages->size(); ++i) {
    const TemplateVariables& message = (*messages)[i];
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      return make_error(Code::kInvalidArgument,
                        "messages[{}]: expected an object with a \"role\" and its \"content\"", i);
  }
  return {};
}

// Calls and results of turns before: a template without tools would lose them.
bool has_tool_turns(const TemplateVariables& messages) {
  return std::any_of(messages.begin(), messages.end(), [](const TemplateVariables& message) {
    return message["role"] == "tool" || message.contains("tool_calls");
  });
}

}  // namespace

Result<MarkedText> render_chat(const ModelFiles& files, const TemplateVariables& variables,
                               std::string_view prompt_template) {
  WH_TRY(check_messages(variables));
  TemplateVariables all = files.token_spellings;
  const auto goes_on = variables.find("continue_final_message");
  all["add_generation_prompt"] = goes_on == variables.end() || *goes_on != true;
  for (const auto& [name, value] : variables.items()) all[name] = value;
  const bool has_tools = (all.contains("tools") && !all["tools"].empty()) || has_tool_turns(all["messages"]);
  WH_ASSIGN(const PromptTemplate* prompt,
            files.prompts.find(prompt_template.empty() ? files.default_prompt : prompt_template));
  if (prompt->chat) return render_prompt(*prompt, *prompt->chat, all);  // a model without a template will do
  WH_ASSIGN(const ChatTemplate* chat, files.templates.choose(has_tools));
  return render_prompt(*prompt, *chat, all);
}

Result<Prompt> make_prompt(const ModelFiles& files, const Request& request) {
  const bool chat = !request.messages.empty() || !request.messages_json.empty();
  const int kinds = request.prompt.has_value() + !request.prompt_token_ids.empty() + chat;
  if (kinds != 1)
    return make_error(Code::kInvalidArgument, "a request needs {}one of prompt, prompt_ids and messages",
                      kinds == 0 ? "" : "exactly ");
  Prompt prompt;
  if (!request.prompt_token_ids.empty()) {
    prompt.ids = request.prompt_token_ids;
    return prompt;
  }
  WH_ASSIGN(const Tokenizer* tokenizer, require_tokenizer(files));
  if (!chat) {
    prompt.text = *request.prompt;
    prompt.ids = tokenizer->encode(prompt.text, {.parse_special = request.parse_special,
                                                 .add_special_tokens = request.add_special_tokens});
    return prompt;
  }
  prompt.is_chat = true;
  WH_ASSIGN(const TemplateVariables variables, variables_of(request));
  WH_ASSIGN(MarkedText rendered, render_chat(files, variables, request.prompt_template));
  prompt.ids = tokenizer->encode(rendered);
  prompt.text = std::move(rendered.text);
  return prompt;
}

}  // namespace whippet
