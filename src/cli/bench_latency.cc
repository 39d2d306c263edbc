#include "cli/bench_latency.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "api/json_file.h"
#include "backend/cpu/probe.h"
#include "backend/registry.h"
#include "base/log.h"
#include "cli/bench_engine.h"
#include "cli/bench_figures.h"
#include "cli/bench_shape.h"
#include "cli/bench_steps.h"
#include "cli/engine_options.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "engine/memory.h"
#include "whippet/whippet.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(Time to the first token and tokens per second of a batch of equal requests, all sent at once: random
prompts, greedy, no end before --output-len tokens. The median of --repeat runs after one that is not
counted. The prefix cache is off. Weights read per second are shown as a share of the memory bandwidth that
a built-in probe reads, products as a share of the machine's peak. Lengths and batches may be lists: every
combination is measured.

MODEL may be shape:qwen2.5-0.5b, shape:internlm2-1.8b, shape:llama-3.2-1b or shape:smollm2-135m: random
weights of that shape, made in memory in the form that --dtype or --quantization says, and timed step by step
without an engine around them.

--json prints one object: prefill_tokens_per_s, decode_tokens_per_s, ttft_ms, weight_bytes,
read_bandwidth_share, and what was run; of lists, one object a line.

Examples:
  whippet bench latency
  whippet bench latency org/name --prompt-len 512 --output-len 64 --batch 16 --json
  whippet bench latency --prompt-len 128,512,4096 --batch 1,4,16,32,64
  whippet bench latency shape:qwen2.5-0.5b --quantization int4 --batch 1,4,16,32,64 --json)";

constexpr std::string_view kShapePrefix = "shape:";
constexpr int32_t kMostTokens = 1 << 20, kMostRequests = 4096;

struct Options {
  EngineOptions engine;
  CLI::Option* prompt_len;
  CLI::Option* output_len;
  CLI::Option* batch;
  CLI::Option* repeat;
  CLI::Option* head_quantization;
  CLI::Option* group_size;
  CLI::Option* minima;
  CLI::Option* json;
};

struct Plan {
  std::vector<LatencyWork> works;
  int32_t repeat = 5;
  std::string head_quantization;  // "": as the rest
  int32_t group_size = 128;
  bool minima = false, of_shape = false;  // of_shape: something was asked for that only shapes have
  bool json = false;
};

using Report = std::function<Status(const BenchSubject&, const LatencyWork&, const std::vector<LatencyRun>&,
                                    const cpu::MachineSpeed&)>;

// What `arrivals` (in order of time) say of a run.
LatencyRun evaluate(const std::vector<Arrival>& arrivals, size_t requests) {
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

Result<LatencyRun> run_once(Engine& engine, const LatencyWork& work, std::mt19937_64& random) {
  std::vector<Request> requests;
  for (int32_t i = 0; i < work.batch; ++i)
    requests.push_back(random_request(work.prompt_len, work.output_len, engine.vocab_size(), random));
  std::vector<Arrival> arrivals;
  WH_TRY(answer_all(engine, std::move(requests), [&](const Arrival& piece) { arrivals.push_back(piece); }));
  return evaluate(arrivals, static_cast<size_t>(work.batch));
}

std::string lengths_of(const LatencyWork& work) {
  return fmt::format("--prompt-len {} --output-len {}", work.prompt_len, work.output_len);
}

// Batches that the engine cannot run at once are measured, but are not what they are called.
void warn_of_waiting(const Engine& engine, const LatencyWork& work) {
  if (work.batch > engine.config().max_num_seqs)
    log_warning("--batch {}: only {} run at a time (--max-num-seqs)", work.batch,
                engine.config().max_num_seqs);
  const auto memory = ordered_json::parse(engine.model_info_json())["memory"];
  const auto room = memory["kv_cache_tokens"].get<int64_t>();
  const int64_t block = engine.config().block_size;
  const int64_t needed =
      (int64_t{work.prompt_len} + work.output_len + block - 1) / block * block * work.batch;
  if (needed <= room || room == 0) return;
  const double bytes = memory["kv_cache_bytes"].get<double>() / static_cast<double>(room);
  const auto mebibytes = static_cast<uint64_t>(bytes * static_cast<double>(needed) / (1 << 20)) + 1;
  log_warning(
      "--batch {} {}: {} tokens of KV cache are needed and there are {}, so that some requests wait; "
      "--kv-cache-memory {}MiB has room for all",
      work.batch, lengths_of(work), needed, room, mebibytes);
}

Status measure_model(const Plan& plan, EngineConfig config, const Report& report) {
  if (plan.of_shape)
    return make_error(Code::kInvalidArgument,
                      "--head-quantization, --group-size and --minima are for shape: models");
  config.enable_prefix_caching = false;
  int32_t most = 1;
  for (const LatencyWork& work : plan.works) most = std::max(most, work.batch);
  if (config.max_num_seqs == 0) config.max_num_seqs = most;
  WH_ASSIGN(cpu::MachineSpeed machine, measure_machine_of(config));
  Engine engine(config);
  const BenchSubject subject = subject_of(engine, machine);
  for (const LatencyWork& work : plan.works)
    WH_TRY(check_length(engine, lengths_of(work), work.prompt_len, work.output_len));
  std::mt19937_64 random(1);
  for (const LatencyWork& work : plan.works) {
    warn_of_waiting(engine, work);
    std::vector<LatencyRun> runs;
    for (int32_t i = 0; i <= plan.repeat; ++i) {
      WH_ASSIGN(const LatencyRun timed, run_once(engine, work, random));
      log_debug("run {}: ttft {:.1f} ms, decode {:.1f} tokens/s", i, timed.ttft * 1e3, timed.decode);
      if (i > 0) runs.push_back(timed);
    }
    WH_TRY(report(subject, work, runs, machine));
  }
  return {};
}

LatencyRun run_steps(StepBench& bench, const LatencyWork& work) {
  const PromptTimes prompts = bench.prompts();
  const std::vector<double> steps = bench.answers();
  return {.ttft = prompts.first,
          .prefill = prompts.all,
          .decode = steps.empty() ? 0 : work.batch / median(steps)};
}

// "int4 in groups of 128 with minima, head int8".
std::string form_name(const ShapeForm& body, const std::string& quantization, const std::string& head) {
  const std::string own = quantization.empty() ? "none" : quantization;
  const std::string groups = body.group > 0 ? fmt::format(" in groups of {}", body.group) : "";
  const bool minima = body.codes == CanonicalLinear::Codes::kU4 && !body.symmetric;
  return own + groups + (minima ? " with minima" : "") + ", head " + (head.empty() ? "none" : head);
}

Status measure_shape(const Plan& plan, const EngineConfig& config, const Report& report) {
  WH_ASSIGN(const ModelSpec spec, find_shape(std::string_view(config.model).substr(kShapePrefix.size())));
  const std::string& head_name =
      plan.head_quantization.empty() ? config.quantization : plan.head_quantization;
  const auto form = [&](const std::string& name) {
    return parse_shape_form(config.dtype, name, plan.group_size, plan.minima);
  };
  WH_ASSIGN(const ShapeForm body, form(config.quantization));
  WH_ASSIGN(const ShapeForm head, form(head_name));
  if (config.device != "auto" && config.device != "cpu")
    return make_error(Code::kInvalidArgument, "shapes are measured on the CPU, not on '{}'", config.device);
  for (const LatencyWork& work : plan.works) {
    if (int64_t{work.prompt_len} + work.output_len > spec.max_position)
      return make_error(Code::kInvalidArgument,
                        "{}: the context of a shape has {} tokens: ask for shorter ones", lengths_of(work),
                        spec.max_position);
  }
  WH_ASSIGN(const std::unique_ptr<Backend> backend,
            make_backend("cpu", {.num_threads = config.threads, .isa = config.isa}));
  WH_ASSIGN(const DType kv_type, read_kv_type(config, DType::kBF16, false));
  WH_ASSIGN(const Model model, make_shape(spec, body, head, *backend));
  for (const LatencyWork& work : plan.works) {
    StepBench bench(model, *backend, {work.prompt_len, work.output_len, work.batch}, kv_type);
    WH_ASSIGN(cpu::MachineSpeed machine, cpu::measure_machine(config.threads, config.isa));
    std::vector<LatencyRun> runs;
    for (int32_t i = 0; i <= plan.repeat; ++i) {
      const LatencyRun timed = run_steps(bench, work);
      if (i > 0) runs.push_back(timed);
    }
    const BenchSubject subject{
        .model = config.model,
        .device = backend->description(),
        .dtype = config.dtype,
        .quantization = form_name(body, config.quantization, head_name),
        .spec = spec,
        .weight_bytes = static_cast<double>(model.weights.bytes_per_step()),
        .peak_gops = peak_of(model.weights.layers[0].down.parts[0].input_type, machine)};
    WH_TRY(report(subject, work, runs, machine));
  }
  return {};
}

Result<int> run(const Plan& plan, const EngineConfig& config) {
  const Report report = [&](const BenchSubject& subject, const LatencyWork& work,
                            const std::vector<LatencyRun>& runs, const cpu::MachineSpeed& machine) -> Status {
    const ordered_json result = latency_report(subject, work, runs, machine);
    if (!plan.json) return write_output(latency_table(result));
    return write_output((plan.works.size() > 1 ? result.dump() : json_text(result)) + "\n");
  };
  if (config.model.starts_with(kShapePrefix))
    WH_TRY(measure_shape(plan, config, report));
  else
    WH_TRY(measure_model(plan, config, report));
  return kExitOk;
}

std::string text_of(const CLI::Option* option, const std::string& other) {
  return option->count() > 0 ? option->as<std::string>() : other;
}

Result<Plan> plan_of(const Options& options) {
  Plan plan;
  WH_ASSIGN(const auto prompts,
            parse_counts("--prompt-len", text_of(options.prompt_len, "512"), kMostTokens));
  WH_ASSIGN(const auto outputs, parse_counts("--output-len", text_of(options.output_len, "64"), kMostTokens));
  WH_ASSIGN(const auto batches, parse_counts("--batch", text_of(options.batch, "1"), kMostRequests));
  plan.works = combine(prompts, outputs, batches);
  if (options.repeat->count() > 0) plan.repeat = options.repeat->as<int32_t>();
  plan.head_quantization = text_of(options.head_quantization, "");
  if (options.group_size->count() > 0) plan.group_size = options.group_size->as<int32_t>();
  plan.minima = options.minima->count() > 0;
  plan.of_shape = !plan.head_quantization.empty() || options.group_size->count() > 0 || plan.minima;
  plan.json = options.json->count() > 0;
  return plan;
}

}  // namespace

Run setup_bench_latency(CLI::App& latency, const Context& context) {
  latency.description(std::string(kHelp) + "\n");
  latency.fallthrough();
  const Options options{
      .engine = EngineOptions(latency, context),
      .prompt_len =
          add_value(latency, "--prompt-len,--input-len", "N,...", "tokens of each prompt; default: 512"),
      .output_len = add_value(latency, "--output-len", "N,...", "tokens of each answer; default: 64"),
      .batch = add_value(latency, "--batch,--batch-size", "N,...", "requests at a time; default: 1"),
      .repeat = add_value(latency, "--repeat,--num-iters", "N", "runs that count; default: 5")
                    ->check(CLI::Range(1, 1000).description("")),
      .head_quantization =
          add_value(latency, "--head-quantization", "FORM", "none, int8 or int4, of the head of a shape"),
      .group_size = add_value(latency, "--group-size", "N", "inputs a scale, of a shape; default: 128")
                        ->check(CLI::Range(8, 1 << 16).description("")),
      .minima = add_switch(latency, "--minima", "groups of 4 bits with a minimum, of a shape"),
      .json = add_switch(latency, "--json", "JSON instead of a table")};
  return [options, &latency, &context] {
    const Result<Plan> plan = plan_of(options);
    if (!plan.ok()) return report_usage(context, latency, plan.error());
    return run_with_config(options.engine, latency, context, [&](const EngineConfig& config) {
      return with_failures([&] { return run(*plan, config); });
    });
  };
}

}  // namespace whippet
