// Where a checkpoint keeps its chat template, and which of several a chat takes.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/chat_template.h"

namespace whippet {

struct NamedTemplate {
  std::string name;    // "default", "tool_use", ...
  std::string file;    // "chat_template.jinja", "tokenizer_config.json", ...: for people
  std::string source;  // the template itself
};

// From the first that has any: chat_template.jinja (and additional_chat_templates/NAME.jinja),
// "chat_template" of tokenizer_config.json (a text, or a list of {"name", "template"}), chat_template.json.
// Empty: none.
Result<std::vector<NamedTemplate>> read_template_files(const std::filesystem::path& folder,
                                                       const nlohmann::json& tokenizer_config);
// tokenizer.chat_template and tokenizer.chat_template.NAME of GGUF metadata.
std::vector<NamedTemplate> gguf_templates(const nlohmann::json& metadata);
// --chat-template: a file, or the template itself.
Result<std::vector<NamedTemplate>> template_from_option(const std::string& option);

// The compiled templates of a checkpoint: "default", and the one for chats with tools where there is one.
struct ChatTemplates {
  std::vector<NamedTemplate> sources;
  std::optional<ChatTemplate> plain;
  std::optional<ChatTemplate> with_tools;
  std::string problem;  // why there is none

  // kInvalidArgument says why there is none and what to do.
  Result<const ChatTemplate*> choose(bool has_tools) const;
};
ChatTemplates compile_templates(std::vector<NamedTemplate> sources);

}  // namespace whippet
