// From a Request (text, ids or chat messages) to the ids that the engine runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/model_files.h"
#include "base/error.h"
#include "text/marked_text.h"
#include "whippet/request.h"

namespace whippet {

struct Prompt {
  std::vector<int32_t> ids;
  std::string text;      // what the ids were made of; empty for ids that came as ids
  bool is_chat = false;  // its max_tokens default is the rest of the context
};

// kInvalidArgument where not exactly one kind of prompt is there, the JSON is wrong, or the model lacks the
// tokenizer or template that it takes.
Result<Prompt> make_prompt(const ModelFiles& files, const Request& request);

// The chat as the template renders it. variables: "messages" (an array of objects), "tools",
// "add_generation_prompt" (true where it is not there and no final message is continued),
// "continue_final_message", and whatever else the template reads. prompt_template: a named one; empty: the
// files' default one.
Result<MarkedText> render_chat(const ModelFiles& files, const TemplateVariables& variables,
                               std::string_view prompt_template = "");

}  // namespace whippet
