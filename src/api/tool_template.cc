#include "api/tool_template.h"

#include <algorithm>

namespace whippet {
namespace {

// The form in https://github.com/InternLM/InternLM/blob/main/chat/chat_format.md: tools in a system message
// of the name <|plugin|>, calls behind the text of an answer, results as the environment's.
constexpr const char* kInternLm2 = R"({{- bos_token }}
{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
    {%- set messages = messages[1:] %}
{%- endif %}
{%- if tools %}
    {{- '<|im_start|>system name=<|plugin|>\n[' }}
    {%- for tool in tools %}
        {{- '\n' }}
        {{- (tool.function or tool) | tojson }}
        {{- '' if loop.last else ',' }}
    {%- endfor %}
    {{- '\n]<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>environment name=<|plugin|>\n' + message.content + '<|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\n' + message.content }}
        {%- for call in message.tool_calls or [] %}
            {{- '<|action_start|><|plugin|>\n{"name": "' + call.function.name + '", "parameters": ' }}
            {{- call.function.arguments | tojson }}
            {{- '}<|action_end|>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %})";

}  // namespace

void add_tool_template(const Tokenizer& tokenizer, std::vector<NamedTemplate>& templates) {
  if (templates.empty() || !tokenizer.find("<|plugin|>") || !tokenizer.find("<|action_start|>")) return;
  const bool reads_tools = std::any_of(templates.begin(), templates.end(), [](const NamedTemplate& named) {
    return named.source.find("tools") != std::string::npos;
  });
  if (!reads_tools) templates.push_back({"tool_use", "built in", kInternLm2});
}

}  // namespace whippet
