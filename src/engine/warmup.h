// Runs a few requests through everything before the engine says that it is ready: weights are paged in, every
// path of a step has run once, so that the first request is as quick as the tenth.
#pragma once

#include "engine/active_request.h"
#include "engine/engine_loop.h"

namespace whippet {

// On the engine thread, before any request. Leaves no events, no counts and no hits behind.
void warm_up(EngineLoop& loop, const RequestRules& rules);

}  // namespace whippet
