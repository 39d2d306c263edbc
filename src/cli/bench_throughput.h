// whippet bench throughput: how many requests and tokens a second one engine does, all of them asked at once.
#pragma once

#include "cli/command.h"

namespace whippet {

// Adds the flags to `app`. The context outlives the result.
Run setup_bench_throughput(CLI::App& app, const Context& context);

}  // namespace whippet
