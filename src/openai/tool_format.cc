#include "openai/tool_format.h"

namespace whippet::openai {
namespace {

constexpr ToolFormat kFormats[] = {
    {.name = "hermes",  // Qwen2.5, Qwen3 and most others
     .open = "<tool_call>",
     .close = "</tool_call>",
     .arguments = "arguments",
     .between = "\n",
     .separator = "\n",
     .end_token = ""},
    {.name = "internlm",
     .open = "<|action_start|><|plugin|>",
     .close = "<|action_end|>",
     .arguments = "parameters",
     .between = "\n",
     .separator = "",
     .end_token = "<|action_end|>"},
    {.name = "llama3_json",
     .open = "<|python_tag|>",
     .close = ";",
     .arguments = "parameters",
     .bare = true,
     .between = "",
     .separator = "",
     .end_token = "<|eom_id|>"},
};

}  // namespace

const ToolFormat* find_tool_format(std::string_view name) {
  for (const ToolFormat& format : kFormats)
    if (format.name == name) return &format;
  return nullptr;
}

std::vector<std::string> tool_format_names() {
  std::vector<std::string> names;
  for (const ToolFormat& format : kFormats) names.emplace_back(format.name);
  return names;
}

}  // namespace whippet::openai
