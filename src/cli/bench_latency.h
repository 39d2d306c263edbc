// whippet bench latency: how fast one batch of equal requests is, as shares of what the machine can do.
#pragma once

#include "cli/command.h"

namespace whippet {

Run setup_bench_latency(CLI::App& latency, const Context& context);

}  // namespace whippet
