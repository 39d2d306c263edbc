// A chat's body as the engine renders it; /v1/chat/completions and /tokenize read it alike. Internal to
// openai.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "openai/body_reader.h"
#include "openai/reasoning_parser.h"
#include "openai/refusal.h"
#include "openai/tool_fields.h"
#include "openai/tool_format.h"

namespace whippet::openai {

struct RenderedChat {
  std::vector<int32_t> ids = {};
  std::string last_message = {};            // its content where an assistant wrote it
  ToolFields tools = {};                    // points into the body
  const ToolFormat* tool_format = nullptr;  // where there are tools, or were
  Thinking thinking = Thinking::kNever;
};

// Messages, tools and template of a body whose fields have been checked. Takes the messages out of the body.
Outcome<RenderedChat> render_chat(const Context& context, Json& body);

}  // namespace whippet::openai
