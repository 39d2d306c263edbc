#include "text/prompt_template.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace whippet {
namespace {

constexpr const char* kContinue = "continue_final_message";
// Stands after the content that the answer goes on with: whatever a template strips from the content's end
// stays, and what the template adds begins behind it.
constexpr std::string_view kEndMark = "\x02the answer goes on here\x03";
constexpr std::string_view kProbe = "a probe of the chat template";

bool has_system(const TemplateVariables& messages) {
  if (messages.empty() || !messages.front().is_object()) return false;
  const auto role = messages.front().find("role");
  return role != messages.front().end() && (*role == "system" || *role == "developer");
}

bool is_true(const TemplateVariables& variables, const char* name) {
  const auto found = variables.find(name);
  return found != variables.end() && found->is_boolean() && found->get<bool>();
}

bool has_tools(const TemplateVariables& variables) {
  const auto tools = variables.find("tools");
  return tools != variables.end() && !tools->is_null() && !tools->empty();
}

Status mark_final_message(TemplateVariables& variables) {
  if (is_true(variables, "add_generation_prompt"))
    return make_error(
        Code::kInvalidArgument,
        "continue_final_message and add_generation_prompt exclude each other: the answer goes on "
        "with the last message, or begins a new one");
  TemplateVariables& last = variables["messages"].back();
  if (!last.is_object() || !last.contains("content") || !last["content"].is_string())
    return make_error(Code::kInvalidArgument,
                      "continue_final_message: the last message has no text to go on with");
  last["content"] = last["content"].get<std::string>() + std::string(kEndMark);
  return {};
}

Status cut_after_final_message(MarkedText& rendered) {
  const size_t end = rendered.text.rfind(kEndMark);
  if (end == std::string::npos)
    return make_error(Code::kInvalidArgument,
                      "continue_final_message: the chat template does not write the last message as it is");
  rendered.text.resize(end);
  std::vector<TextSpan>& spans = rendered.user_spans;
  while (!spans.empty() && spans.back().begin >= end) spans.pop_back();
  if (!spans.empty()) spans.back().end = std::min(spans.back().end, end);
  return {};
}

// What the template writes before a chat that has no system message: the bytes [begin, end) of its rendering.
// Found by comparing three chats: with a system message, without, and of nothing but one.
struct Block {
  size_t begin = 0;
  std::string text;
};
Block default_system(const ChatTemplate& chat, TemplateVariables variables) {
  const TemplateVariables user = {{"role", "user"}, {"content", kProbe}};
  const TemplateVariables system = {{"role", "system"}, {"content", kProbe}};
  const auto render = [&](std::initializer_list<TemplateVariables> messages) {
    variables["messages"] = TemplateVariables::array_t(messages);
    auto rendered = chat.render(variables);
    return rendered.ok() ? std::move(rendered->text) : std::string();
  };
  const std::string alone = render({user}), both = render({system, user});
  variables["add_generation_prompt"] = false;
  const std::string block = render({system});
  if (block.empty() || !both.starts_with(block)) return {};
  const std::string_view rest = std::string_view(both).substr(block.size());
  if (rest.find(kProbe) == std::string_view::npos || !alone.ends_with(rest)) return {};
  Block result{.text = alone.substr(0, alone.size() - rest.size())};
  const auto bos = variables.find("bos_token");
  if (bos != variables.end() && bos->is_string() &&
      result.text.starts_with(bos->get_ref<const std::string&>()))
    result.begin = bos->get_ref<const std::string&>().size();
  result.text.erase(0, result.begin);
  return result;
}

void drop_default_system(const ChatTemplate& chat, TemplateVariables variables, MarkedText& rendered) {
  const Block block = default_system(chat, std::move(variables));
  if (block.text.empty() || rendered.text.compare(block.begin, block.text.size(), block.text) != 0) return;
  const size_t end = block.begin + block.text.size();
  if (!rendered.user_spans.empty() && rendered.user_spans.front().begin < end) return;
  rendered.text.erase(block.begin, block.text.size());
  for (TextSpan& span : rendered.user_spans) {
    span.begin -= block.text.size();
    span.end -= block.text.size();
  }
}

}  // namespace

std::string PromptTemplate::summary() const {
  std::string text = chat ? "a chat template of its own" : "the model's chat template";
  if (drops_default_system) text += " without its default system message";
  if (!system.empty()) text += fmt::format(", a system message of {} bytes", system.size());
  if (!variables.empty()) text += ", variables for the template";
  return text;
}

PromptTemplates::PromptTemplates() {
  all_.push_back({.name = "default", .origin = "built in"});
  all_.push_back({.name = "minimal", .origin = "built in", .drops_default_system = true});
}

std::vector<std::string> PromptTemplates::names() const {
  std::vector<std::string> names;
  for (const PromptTemplate& prompt : all_) names.push_back(prompt.name);
  return names;
}

Result<const PromptTemplate*> PromptTemplates::find(std::string_view name) const {
  if (name.empty()) return &all_.front();
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [&](const PromptTemplate& prompt) { return prompt.name == name; });
  if (found != all_.end()) return &*found;
  return make_error(Code::kInvalidArgument, "prompt_template: there is no {}; there are {}", quote_text(name),
                    fmt::join(names(), ", "));
}

Result<MarkedText> render_prompt(const PromptTemplate& prompt, const ChatTemplate& model,
                                 const TemplateVariables& variables) {
  const ChatTemplate& chat = prompt.chat ? *prompt.chat : model;
  const bool goes_on = is_true(variables, kContinue);
  const bool needs_system = !prompt.system.empty() && !has_system(variables.at("messages"));
  if (!goes_on && !needs_system && !prompt.drops_default_system && prompt.variables.empty())
    return chat.render(variables);

  TemplateVariables all = variables;
  for (const auto& [name, value] : prompt.variables.items())
    if (!all.contains(name)) all[name] = value;
  TemplateVariables& messages = all["messages"];
  if (needs_system)
    messages.insert(messages.begin(), TemplateVariables({{"role", "system"}, {"content", prompt.system}}));
  if (goes_on) WH_TRY(mark_final_message(all));
  WH_ASSIGN(MarkedText rendered, chat.render(all));
  if (prompt.drops_default_system && !has_system(messages) && !has_tools(all))
    drop_default_system(chat, std::move(all), rendered);
  if (goes_on) WH_TRY(cut_after_final_message(rendered));
  return rendered;
}

}  // namespace whippet
