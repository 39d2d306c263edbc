// whippet bench serve: load on any server of OpenAI's API, and what it was like to be its client.
#pragma once

#include "cli/command.h"

namespace whippet {

// Adds the flags to `app`. The context outlives the result.
Run setup_bench_serve(CLI::App& app, const Context& context);

}  // namespace whippet
