#include "openai/tool_prompt.h"

#include <fmt/format.h>

#include <utility>

#include "openai/field_table.h"
#include "whippet/whippet.h"

namespace whippet::openai {
namespace {

constexpr const char* kProbe = "probe_of_the_template";

const ToolFormat& format_of_vocabulary(const Context& context) {
  const auto is_token = [&](const char* text) { return context.encode(text, true, false).size() == 1; };
  if (is_token("<|plugin|>")) return *find_tool_format("internlm");
  if (is_token("<|python_tag|>")) return *find_tool_format("llama3_json");
  return *find_tool_format("hermes");
}

std::string describe(const Json& tools, const ToolFormat& format) {
  std::string text =
      "You can call functions. Each line between <tools> and </tools> describes one:\n<tools>\n";
  for (const Json& tool : tools) text += tool["function"].dump() + "\n";
  text += fmt::format(
      "</tools>\nTo call a function, answer with its name and its arguments in this form:\n"
      "{}{}{{\"name\": \"...\", \"{}\": {{...}}}}{}{}\n"
      "The result comes between <tool_response> and </tool_response>. Where no function helps, answer in "
      "words.",
      format.bare ? "" : format.open, format.between, format.arguments, format.between,
      format.bare ? "" : format.close);
  return text;
}

void add_system_text(Json& messages, std::string text) {
  if (!messages.empty() && messages.front()["role"] == "system") {
    const std::string content = messages.front()["content"].get<std::string>();
    messages.front()["content"] = content.empty() ? text : content + "\n\n" + text;
  } else {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", std::move(text)}});
  }
}

void write_calls(Json& message, const ToolFormat& format) {
  std::string text = message["content"].get<std::string>();
  for (const Json& call : message["tool_calls"]) {
    const Json& function = call["function"];
    const Json* arguments = field(function, "arguments");
    const Json object = {{"name", function["name"]},
                         {std::string(format.arguments), arguments ? *arguments : Json::object()}};
    if (!text.empty()) text += '\n';
    if (!format.bare) text.append(format.open).append(format.between);
    text += object.dump();
    if (!format.bare) text.append(format.between).append(format.close);
  }
  message["content"] = std::move(text);
  message.erase("tool_calls");
}

}  // namespace

ToolSupport tool_support(const Context& context, const std::string& prompt_template) {
  const Json function = {{"name", kProbe},
                         {"parameters", {{"type", "object"}, {"properties", Json::object()}}}};
  Request request;
  request.messages_json = R"([{"role": "user", "content": "Hi"}])";
  request.template_variables_json =
      Json{{"tools", Json::array({{{"type", "function"}, {"function", function}}})}}.dump();
  request.prompt_template = prompt_template;
  std::string text;
  try {
    text = context.render(request).first;
  } catch (const Failure&) {  // the chat itself will say what is wrong
  }
  ToolSupport support{.in_template = text.find(kProbe) != std::string::npos};
  const auto tells = [&](const char* mark) { return text.find(mark) != std::string::npos; };
  support.format = !support.in_template || tells("<tool_call>") ? find_tool_format("hermes")
                   : tells("<|plugin|>")                        ? find_tool_format("internlm")
                   : tells("{\"name\": function name, \"param") ? find_tool_format("llama3_json")
                                                                : &format_of_vocabulary(context);
  if (const ToolFormat* chosen = find_tool_format(context.tool_call_parser)) support.format = chosen;
  return support;
}

bool have_tool_turns(const Json& messages) {
  for (const Json& message : messages)
    if (message["role"] == "tool" || message.contains("tool_calls")) return true;
  return false;
}

void write_tools_as_text(Json& messages, const Json* tools, const ToolFormat& format) {
  Json written = Json::array();
  bool in_results = false;
  for (Json& message : messages) {
    const bool is_result = message["role"] == "tool";
    if (is_result) {
      std::string text = "<tool_response>\n" + message["content"].get<std::string>() + "\n</tool_response>";
      if (in_results) {
        written.back()["content"] = written.back()["content"].get<std::string>() + "\n" + text;
      } else {
        written.push_back({{"role", "user"}, {"content", std::move(text)}});
      }
    } else {
      if (message.contains("tool_calls")) write_calls(message, format);
      written.push_back(std::move(message));
    }
    in_results = is_result;
  }
  if (tools != nullptr) add_system_text(written, describe(*tools, format));
  messages = std::move(written);
}

}  // namespace whippet::openai
