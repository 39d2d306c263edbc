// whippet bench latency: how fast one batch of equal requests is, as shares of what the machine can do; and
// the command itself (bench serve is in bench_serve).
#include <algorithm>
#include <chrono>
#include <random>
#include <utility>
#include <vector>

#include "api/json_file.h"
#include "backend/cpu/probe.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "cli/bench_serve.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "whippet/whippet.h"

namespace whippet {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

constexpr const char* kHelp = R"(Measure this machine with a model, or a server.

Examples:
  whippet bench latency
  whippet bench serve --num-prompts 200 --max-concurrency 32
  whippet bench latency org/name --prompt-len 512 --output-len 64 --batch 1 --json)";

constexpr const char* kLatencyHelp =
    R"(Time to the first token and tokens per second of a batch of equal requests, all sent at once: random
prompts, greedy, no end before --output-len tokens. The median of --repeat runs after one that is not
counted. The prefix cache is off. Weights read per second are shown as a share of the memory bandwidth that
a built-in probe reads.

--json prints one object: prefill_tokens_per_s, decode_tokens_per_s, ttft_ms, weight_bytes,
read_bandwidth_share, and what was run.

Examples:
  whippet bench latency
  whippet bench latency org/name --prompt-len 512 --output-len 64 --batch 16 --json)";

struct Work {
  int32_t prompt_len = 512;
  int32_t output_len = 64;
  int32_t batch = 1;
  int32_t repeat = 5;
};

struct Options {
  EngineOptions engine;
  CLI::Option* prompt_len;
  CLI::Option* output_len;
  CLI::Option* batch;
  CLI::Option* repeat;
  CLI::Option* json;
};

struct Timed {
  double ttft = 0;     // seconds to the first token, the middle one of the requests
  double prefill = 0;  // seconds until every request had its first token
  double decode = 0;   // tokens per second of all requests together, from then on
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Request random_request(const Work& work, int32_t vocab, std::mt19937& random) {
  std::uniform_int_distribution<int32_t> id(0, vocab - 1);
  Request request;
  for (int32_t i = 0; i < work.prompt_len; ++i) request.prompt_token_ids.push_back(id(random));
  request.params.temperature = 0;
  request.params.max_tokens = work.output_len;
  request.params.ignore_eos = true;
  return request;
}

// A piece of an answer and when it came.
struct Arrival {
  size_t request = 0;
  size_t tokens = 0;
  bool last = false;
  std::string error;
  double seconds = 0;  // since the first submission
};

// What `arrivals` (in order of time) say of a run.
Timed evaluate(const std::vector<Arrival>& arrivals, size_t requests) {
  std::vector<double> first(requests, -1);
  std::vector<double> begun;
  size_t tokens = 0, tokens_before = 0;
  for (const Arrival& arrival : arrivals) {
    tokens += arrival.tokens;
    if (arrival.tokens == 0 || first[arrival.request] >= 0) continue;
    first[arrival.request] = arrival.seconds;
    begun.push_back(arrival.seconds);
    tokens_before = tokens;
  }
  const double last_begun = begun.back();
  const double rest = arrivals.back().seconds - last_begun;
  return {.ttft = median(begun),
          .prefill = last_begun,
          .decode = rest > 0 ? static_cast<double>(tokens - tokens_before) / rest : 0};
}

Result<Timed> run_once(Engine& engine, const Work& work, int32_t vocab, std::mt19937& random) {
  std::vector<Request> requests;
  for (int32_t i = 0; i < work.batch; ++i) requests.push_back(random_request(work, vocab, random));
  Mailbox<Arrival> mailbox;
  const auto start = Clock::now();
  for (size_t i = 0; i < requests.size(); ++i) {
    engine.submit(std::move(requests[i]), [&mailbox, start, i](const Event& event) {
      const double now = std::chrono::duration<double>(Clock::now() - start).count();
      mailbox.push({i, event.token_ids.size(), event.last, event.error, now});
    });
  }
  std::vector<Arrival> arrivals, batch;
  for (int32_t running = work.batch; running > 0;) {
    mailbox.take(batch);
    for (Arrival& arrival : batch) {
      if (!arrival.error.empty()) return make_error(Code::kUnavailable, "{}", arrival.error);
      running -= arrival.last;
      arrivals.push_back(std::move(arrival));
    }
  }
  return evaluate(arrivals, static_cast<size_t>(work.batch));
}

ordered_json report(const Engine& engine, const Work& work, const std::vector<Timed>& runs,
                    const cpu::MachineSpeed& machine) {
  const auto info = ordered_json::parse(engine.model_info_json());
  std::vector<double> ttft, prefill, decode;
  for (const Timed& run : runs) {
    ttft.push_back(run.ttft);
    prefill.push_back(run.prefill);
    decode.push_back(run.decode);
  }
  const double decode_rate = median(decode);
  const double weight_bytes = info["memory"]["weight_bytes_per_step"].get<double>();
  const double read = weight_bytes * decode_rate / work.batch / 1e9;
  return {{"model", info["model"]},
          {"device", info["device"]},
          {"dtype", engine.config().dtype},
          {"prompt_len", work.prompt_len},
          {"output_len", work.output_len},
          {"batch", work.batch},
          {"repeat", work.repeat},
          {"prefill_tokens_per_s", work.batch * work.prompt_len / median(prefill)},
          {"decode_tokens_per_s", decode_rate},
          {"ttft_ms", median(ttft) * 1e3},
          {"step_ms", decode_rate > 0 ? 1e3 * work.batch / decode_rate : 0},
          {"weight_bytes", static_cast<uint64_t>(weight_bytes)},
          {"read_gb_per_s", read},
          {"machine_read_gb_per_s", machine.read_gb_per_s},
          {"read_bandwidth_share", machine.read_gb_per_s > 0 ? read / machine.read_gb_per_s : 0}};
}

std::string table(const ordered_json& r) {
  const auto number = [&](const char* key) { return r[key].get<double>(); };
  return fmt::format(
      "{} on {}, dtype {}\n"
      "batch {}, prompt {} tokens, answer {} tokens, median of {} runs\n"
      "  time to first token   {:>9.1f} ms\n"
      "  prefill               {:>9.1f} tokens/s\n"
      "  decode                {:>9.1f} tokens/s ({:.2f} ms a step)\n"
      "  weights read          {:>9.1f} GB/s, {:.0f} % of the {:.1f} GB/s that this machine reads\n",
      r["model"].get<std::string>(), r["device"].get<std::string>(), r["dtype"].get<std::string>(),
      r["batch"].dump(), r["prompt_len"].dump(), r["output_len"].dump(), r["repeat"].dump(),
      number("ttft_ms"), number("prefill_tokens_per_s"), number("decode_tokens_per_s"), number("step_ms"),
      number("read_gb_per_s"), 100 * number("read_bandwidth_share"), number("machine_read_gb_per_s"));
}

Result<int> run(const Options& options, const Work& work, EngineConfig config) {
  config.enable_prefix_caching = false;
  if (config.max_num_seqs == 0) config.max_num_seqs = std::max(work.batch, 1);
  WH_ASSIGN(const cpu::MachineSpeed machine, cpu::measure_machine(config.threads, config.isa));
  Engine engine(config);
  const auto info = ordered_json::parse(engine.model_info_json());
  const auto rows = info["sizes"]["vocab_size"].get<int32_t>();
  const int32_t vocab = std::min(rows, info["tokenizer"].value("vocab_size", rows));
  std::mt19937 random(1);
  std::vector<Timed> runs;
  for (int32_t i = 0; i <= work.repeat; ++i) {
    WH_ASSIGN(const Timed timed, run_once(engine, work, vocab, random));
    log_debug("run {}: ttft {:.1f} ms, decode {:.1f} tokens/s", i, timed.ttft * 1e3, timed.decode);
    if (i > 0) runs.push_back(timed);
  }
  const ordered_json result = report(engine, work, runs, machine);
  WH_TRY(write_output(options.json->count() > 0 ? json_text(result) + "\n" : table(result)));
  return kExitOk;
}

CLI::Option* add_number(CLI::App& app, const char* flag, int32_t value, int32_t most, const char* help) {
  return add_value(app, flag, "N", fmt::format("{}; default: {}", help, value))
      ->check(CLI::Range(1, most).description(""));
}

int32_t number(const CLI::Option* option, int32_t other) {
  return option->count() > 0 ? option->as<int32_t>() : other;
}

Run setup_latency(CLI::App& latency, const Context& context) {
  latency.description(std::string(kLatencyHelp) + "\n");
  latency.fallthrough();
  const Work defaults;
  const Options options{.engine = EngineOptions(latency, context),
                        .prompt_len = add_number(latency, "--prompt-len", defaults.prompt_len, 1 << 20,
                                                 "tokens of each prompt"),
                        .output_len = add_number(latency, "--output-len", defaults.output_len, 1 << 20,
                                                 "tokens of each answer"),
                        .batch = add_number(latency, "--batch", defaults.batch, 4096, "requests at a time"),
                        .repeat = add_number(latency, "--repeat", defaults.repeat, 1000, "runs that count"),
                        .json = add_switch(latency, "--json", "one JSON object")};
  return [options, defaults, &latency, &context] {
    const Work work{.prompt_len = number(options.prompt_len, defaults.prompt_len),
                    .output_len = number(options.output_len, defaults.output_len),
                    .batch = number(options.batch, defaults.batch),
                    .repeat = number(options.repeat, defaults.repeat)};
    return run_with_config(options.engine, latency, context, [&](const EngineConfig& config) {
      return with_failures([&] { return run(options, work, config); });
    });
  };
}

Run setup(CLI::App& app, const Context& context) {
  app.require_subcommand(1);
  CLI::App& latency =
      *app.add_subcommand("latency", "time to first token and tokens per second of one batch");
  CLI::App& serve = *app.add_subcommand("serve", "load on a server, and what its clients see");
  serve.fallthrough();
  const Run run_latency = setup_latency(latency, context);
  const Run run_serve = setup_bench_serve(serve, context);
  return [run_latency, run_serve, &serve] { return serve.parsed() ? run_serve() : run_latency(); };
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
