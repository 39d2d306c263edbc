// How tools, calls and results reach a model: through its chat template where that knows tools, else as text
// in ordinary messages. Internal to openai.
#pragma once

#include <string>

#include "openai/body_reader.h"
#include "openai/tool_format.h"

namespace whippet::openai {

struct ToolSupport {
  bool in_template = false;
  const ToolFormat* format = nullptr;  // that the model is told, or was made for; never nullptr
};

// Renders a small chat with a tool and looks.
ToolSupport tool_support(const Context& context, const std::string& prompt_template);

// Whether there are calls or results among them.
bool have_tool_turns(const Json& messages);

// For a template that knows no tools: those that may be called (nullptr: none) go into the system message,
// with how to call them; calls into the text of their messages, results into messages of the user.
void write_tools_as_text(Json& messages, const Json* tools, const ToolFormat& format);

}  // namespace whippet::openai
