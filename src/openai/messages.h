// The messages of a chat, from what clients send to what chat templates read. Internal to openai.
#pragma once

#include "openai/body_reader.h"
#include "openai/refusal.h"

namespace whippet::openai {

// In place. "developer" becomes "system" and "function" "tool", content becomes one text (null: "", parts of
// text are joined by line ends), and the arguments of tool calls, which travel as JSON in a text, become the
// object they hold, so that a template does not quote them twice. "reasoning" becomes "reasoning_content".
// Keys that are not known stay, for templates that read them. Refused: images, sound and files, roles that no
// template knows, what has no content.
Refusal read_messages(Json& messages);

}  // namespace whippet::openai
