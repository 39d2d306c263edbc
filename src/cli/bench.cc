// The command bench: its parts are bench_latency, bench_throughput and bench_serve.
#include "cli/bench_latency.h"
#include "cli/bench_serve.h"
#include "cli/bench_throughput.h"
#include "cli/command.h"

namespace whippet {
namespace {

constexpr const char* kHelp = R"(Measure this machine with a model, or a server.

Examples:
  whippet bench latency
  whippet bench throughput --num-prompts 200
  whippet bench serve --num-prompts 200 --max-concurrency 32
  whippet bench latency org/name --prompt-len 512 --output-len 64 --batch 1 --json
  whippet bench latency shape:qwen2.5-0.5b --quantization int4 --batch 1,16)";

Run setup(CLI::App& app, const Context& context) {
  app.require_subcommand(1);
  CLI::App& latency =
      *app.add_subcommand("latency", "time to first token and tokens per second of one batch");
  CLI::App& throughput =
      *app.add_subcommand("throughput", "requests and tokens per second of the engine, all asked at once");
  CLI::App& serve = *app.add_subcommand("serve", "load on a server, and what its clients see");
  serve.fallthrough();
  const Run run_latency = setup_bench_latency(latency, context);
  const Run run_throughput = setup_bench_throughput(throughput, context);
  const Run run_serve = setup_bench_serve(serve, context);
  return [run_latency, run_throughput, run_serve, &throughput, &serve] {
    return serve.parsed() ? run_serve() : throughput.parsed() ? run_throughput() : run_latency();
  };
}

}  // namespace

Command bench_command() {
  return {.name = "bench",
          .summary = "measure this machine with a model, or a server",
          .help = kHelp,
          .setup = setup,
          .default_log_level = "warning"};
}

}  // namespace whippet
