// "tools", "tool_choice" and "parallel_tool_calls" of a chat. Internal to openai.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "openai/body_reader.h"
#include "openai/refusal.h"

namespace whippet::openai {

enum class ToolChoice : uint8_t { kNone, kAuto, kRequired, kNamed };

struct ToolFields {
  ToolChoice choice = ToolChoice::kNone;  // kNone too where there are no tools
  const Json* tools = nullptr;            // of the body; nullptr: the model is shown none
  std::vector<std::string> names = {};    // that may be called
  bool several = true;                    // calls in one answer
};

// The functions are checked whatever the choice: names as OpenAI has them (letters, digits, _ and -, 64 at
// most) and no two alike, "parameters" the schema of an object, 128 tools at most.
Refusal read_tool_fields(const Json& body, ToolFields& fields);

}  // namespace whippet::openai
