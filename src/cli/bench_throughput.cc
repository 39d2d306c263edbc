#include "cli/bench_throughput.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "cli/bench_engine.h"
#include "cli/bench_flags.h"
#include "cli/bench_prompts.h"
#include "cli/bench_rates.h"
#include "cli/bench_report.h"
#include "cli/engine_options.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "whippet/whippet.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(Requests and tokens per second of the engine alone, without HTTP: all requests are there at once and run
as --max-num-seqs and the other settings of the engine let them (continuous batching). Greedy. Time counts
from the first submission to the last token; loading and tokenizing are done before, and one short request
that is not counted.

Without --dataset-path prompts are random tokens, other ones for another --seed, and answers go on to
--output-len. A file has a text or a JSON object a line, as for `bench serve`: prompt, question or turns are
taken as they stand, messages are rendered by the chat template. Its prompts begin again where there are fewer
than --num-prompts, and the prefix cache then knows them (--no-enable-prefix-caching: not).

Printed as shares of what a built-in probe measures on this machine: weights read, once a step, and products
and sums. --json prints one object: elapsed_time, num_requests, total_num_tokens, requests_per_second,
tokens_per_second, output_tokens_per_second, mean_batch_size, read_bandwidth_share, p99_ttft_ms, ...

Examples:
  whippet bench throughput
  whippet bench throughput org/name --num-prompts 200 --input-len 512 --output-len 64 --max-num-seqs 64 --json
  whippet bench throughput smollm2 --dataset-path prompts.jsonl --output-len 200)";

constexpr int32_t kUsualLength = 128;              // tokens of a prompt and of an answer, where nobody says
constexpr int64_t kMostTokens = int64_t{1} << 28;  // of all prompts together: they are in memory at once

struct Options {
  EngineOptions engine;
  CLI::Option* num_prompts;
  CLI::Option* input_len;
  CLI::Option* output_len;
  CLI::Option* spread;
  CLI::Option* path;
  CLI::Option* ignore_eos;
  CLI::Option* save;
  CLI::Option* json;
};

struct Asked {
  int32_t num_prompts = 100, input_len = kUsualLength, output_len = 0;  // output_len 0: as the file says
  double spread = 0;
  std::string path, save;  // "": random prompts, no file
  bool ignore_eos = true, json = false;
};

template <class T>
T value_or(const CLI::Option* option, const T& other) {
  return option->count() > 0 ? option->as<T>() : other;
}

Result<Asked> read_asked(const Options& options) {
  Asked asked;
  asked.num_prompts = value_or(options.num_prompts, asked.num_prompts);
  asked.input_len = value_or(options.input_len, asked.input_len);
  asked.output_len = value_or(options.output_len, asked.output_len);
  asked.spread = value_or(options.spread, asked.spread);
  asked.path = value_or(options.path, asked.path);
  asked.save = value_or(options.save, asked.save);
  asked.ignore_eos = value_or(options.ignore_eos, asked.path.empty());
  asked.json = options.json->count() > 0;
  if (options.path->count() > 0) {
    if (asked.path.empty()) return make_error(Code::kInvalidArgument, "--dataset-path names no file");
    for (const CLI::Option* option : {options.input_len, options.spread})
      if (option->count() > 0)
        return make_error(Code::kInvalidArgument,
                          "{} is for random prompts: leave it out with --dataset-path", option->get_name());
    return asked;
  }
  const double tokens = asked.num_prompts * (1 + asked.spread) * asked.input_len;
  if (tokens > static_cast<double>(kMostTokens))
    return make_error(Code::kInvalidArgument,
                      "--num-prompts {} of --input-len {} are more than the {} tokens that fit into a run",
                      asked.num_prompts, asked.input_len, kMostTokens);
  return asked;
}

Result<std::vector<Request>> random_requests(const Asked& asked, const Engine& engine) {
  std::mt19937_64 random(engine.config().seed);
  auto prompt_lens = lengths_around(asked.input_len, asked.spread);
  auto output_lens = lengths_around(asked.output_len > 0 ? asked.output_len : kUsualLength, asked.spread);
  WH_TRY(check_length(engine, "--input-len and --output-len", prompt_lens.max(), output_lens.max()));
  std::vector<Request> requests;
  for (int32_t i = 0; i < asked.num_prompts; ++i) {
    const auto prompt_len = static_cast<int32_t>(prompt_lens(random));
    const auto output_len = static_cast<int32_t>(output_lens(random));
    requests.push_back(random_request(prompt_len, output_len, engine.vocab_size(), random));
    requests.back().params.ignore_eos = asked.ignore_eos;
  }
  return requests;
}

std::vector<int32_t> ids_of(const BenchPrompt& prompt, const Engine& engine) {
  if (prompt.messages.is_null()) return engine.encode(prompt.text, true, true);
  Request chat;
  chat.messages_json = json_text(prompt.messages);
  return engine.render(chat).second;
}

Result<std::vector<Request>> file_requests(const Asked& asked, const std::vector<BenchPrompt>& prompts,
                                           const Engine& engine) {
  std::vector<Request> requests;
  size_t tokens = 0;
  for (const BenchPrompt& prompt : prompts) {
    const std::string place = fmt::format("{}, line {}", asked.path, prompt.line);
    Request request;
    try {
      request.prompt_token_ids = ids_of(prompt, engine);
    } catch (const Failure& failure) {
      return make_error(Code::kInvalidArgument, "{}: {}", place, failure.what());
    }
    const int32_t own = asked.output_len > 0 ? asked.output_len : prompt.output_len;
    request.params.max_tokens = own > 0 ? own : kUsualLength;
    request.params.temperature = 0;
    request.params.ignore_eos = asked.ignore_eos;
    const size_t size = request.prompt_token_ids.size();
    WH_TRY(check_length(engine, place, static_cast<int64_t>(size), *request.params.max_tokens));
    tokens += size;
    if (tokens > static_cast<size_t>(kMostTokens))
      return make_error(Code::kInvalidArgument,
                        "{}: the prompts before it have {} tokens: lower --num-prompts", place, kMostTokens);
    requests.push_back(std::move(request));
  }
  return requests;
}

// What the first request costs more than others (pages touched, graphs captured) counts for none.
Status warm_up(Engine& engine) {
  std::mt19937_64 random(engine.config().seed + 1);
  const int32_t length = std::min(engine.max_model_len() / 2, 16);
  std::vector<Request> requests = {random_request(length, length, engine.vocab_size(), random)};
  return answer_all(engine, std::move(requests), [](const Arrival&) {});
}

Result<ThroughputRun> measure(Engine& engine, std::vector<Request> requests, const ModelSpec& spec) {
  WH_TRY(warm_up(engine));
  ThroughputRun run;
  run.answers.resize(requests.size());
  Progress progress("answers", requests.size(), Progress::Unit::kCount);
  const uint64_t before = engine.counts().steps;
  WH_TRY(answer_all(engine, std::move(requests), [&](const Arrival& arrival) {
    run.add(arrival, spec);
    progress.add(arrival.last ? 1 : 0);
  }));
  run.steps = engine.counts().steps - before;
  return run;
}

ordered_json describe(const Asked& asked, const EngineConfig& config) {
  ordered_json described = {{"dataset", asked.path.empty() ? "random" : asked.path},
                            {"seed", config.seed},
                            {"ignore_eos", asked.ignore_eos},
                            {"max_num_seqs", config.max_num_seqs},
                            {"max_num_batched_tokens", config.max_num_batched_tokens}};
  if (asked.path.empty()) {
    described["input_len"] = asked.input_len;
    described["output_len"] = asked.output_len > 0 ? asked.output_len : kUsualLength;
    described["range_ratio"] = asked.spread;
  }
  return described;
}

Result<int> run(const Asked& asked, const EngineConfig& config) {
  if (config.model.starts_with("shape:"))
    return make_error(
        Code::kInvalidArgument,
        "'{}': random weights have no engine around them: use `whippet bench latency {} --batch N`, "
        "or give a model with files",
        config.model, config.model);
  std::vector<BenchPrompt> prompts;
  if (!asked.path.empty()) {
    WH_ASSIGN(prompts, read_bench_prompts(asked.path, static_cast<size_t>(asked.num_prompts)));
  }
  WH_ASSIGN(cpu::MachineSpeed machine, measure_machine_of(config));
  Engine engine(config);
  WH_ASSIGN(std::vector<Request> requests,
            asked.path.empty() ? random_requests(asked, engine) : file_requests(asked, prompts, engine));
  const BenchSubject subject = subject_of(engine, machine);
  WH_ASSIGN(const ThroughputRun measured, measure(engine, std::move(requests), subject.spec));
  ordered_json report = throughput_report(subject, measured, machine);
  report.update(describe(asked, engine.config()));
  if (!asked.save.empty()) WH_TRY(save_report(asked.save, report));
  WH_TRY(write_output(asked.json ? json_text(report) + "\n" : throughput_table(report)));
  return kExitOk;
}

}  // namespace

Run setup_bench_throughput(CLI::App& app, const Context& context) {
  app.description(std::string(kHelp) + "\n");
  app.fallthrough();
  const CLI::Validator number = CLI::Range(1, 1 << 20).description("");
  const Options options{
      .engine = EngineOptions(app, context),
      .num_prompts = add_value(app, "--num-prompts", "N", "requests; default: 100")->check(number),
      .input_len = add_value(app, "--input-len,--prompt-len,--random-input-len", "N",
                             "tokens of a random prompt; default: 128")
                       ->check(number),
      .output_len = add_value(app, "--output-len,--random-output-len", "N",
                              "tokens of an answer; default: what the file says, else 128")
                        ->check(number),
      .spread = add_value(app, "--random-range-ratio", "X",
                          "lengths at random are within this share of both, 0 to 1; default: 0")
                    ->check(within(0, 1)),
      .path = add_value(app, "--dataset-path,--prompts", "FILE",
                        "prompts: a text or a JSON object a line (prompt, messages, question, turns)"),
      .ignore_eos = add_switch(app, "--ignore-eos,!--no-ignore-eos",
                               "answers go on to their length; default: with random prompts"),
      .save = add_value(app, "--save,--output-json", "FILE", "write the JSON object there"),
      .json = add_switch(app, "--json", "one JSON object instead of a table")};
  return [options, &app, &context] {
    const Result<Asked> asked = read_asked(options);
    if (!asked.ok()) return report_usage(context, app, asked.error());
    return run_with_config(options.engine, app, context, [&](const EngineConfig& config) {
      return with_failures([&] { return run(*asked, config); });
    });
  };
}

}  // namespace whippet
