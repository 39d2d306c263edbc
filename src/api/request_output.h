// From the events of a request to its RequestOutput; used by LLM and by commands that gather answers.
#pragma once

#include "whippet/request.h"

namespace whippet {

// Adds one event to what came before it. Usage sums over the answers.
void append_event(const Event& event, RequestOutput& output);

}  // namespace whippet
