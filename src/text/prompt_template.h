// Named ways to turn a chat into a prompt: "default" is the model's own chat template, "minimal" the same
// without the system message that it puts before chats that have none, and a folder may hold more. Used by
// the api, which owns the model's template. Immutable after construction; every method is safe from any
// thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/marked_text.h"

namespace whippet {

struct PromptTemplate {
  std::string name;
  std::string origin;            // the files, or "built in": for people
  std::string description = {};  // for people; may be empty
  std::string system = {};       // the system message of chats that bring none; empty: none
  bool drops_default_system = false;
  std::optional<ChatTemplate> chat = {};                      // instead of the model's
  TemplateVariables variables = TemplateVariables::object();  // for the template, under the chat's own

  // What `whippet prompt` says of it: "the model's template, system message of 12 bytes".
  std::string summary() const;
};

class PromptTemplates {
 public:
  PromptTemplates();  // the built-in ones

  // Adds those of a folder. A template NAME is any of NAME.txt (the system message of chats that bring none)
  // and NAME.jinja (a chat template instead of the model's), or one NAME.json: {"description", "system",
  // "chat_template" (Jinja), "chat_template_kwargs"}. Other files are left alone. Errors name the file.
  static Result<PromptTemplates> from_folder(const std::filesystem::path& folder);

  // Empty: the default one. kInvalidArgument lists the names.
  Result<const PromptTemplate*> find(std::string_view name) const;
  const std::vector<PromptTemplate>& all() const { return all_; }
  std::vector<std::string> names() const;

 private:
  std::vector<PromptTemplate> all_;  // default, minimal, then by name
};

// Renders a chat. variables: as ChatTemplate::render takes them, and "continue_final_message": true ends the
// prompt with the last message's content, for the model to go on with. A chat with tools keeps a system
// message that carries them, with "minimal" too.
Result<MarkedText> render_prompt(const PromptTemplate& prompt, const ChatTemplate& model,
                                 const TemplateVariables& variables);

}  // namespace whippet
