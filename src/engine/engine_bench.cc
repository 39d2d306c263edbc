// What a step costs on the host: scheduling, batch building and commit over a runner that computes nothing.
// Prints microseconds a step for some numbers of running sequences; `engine_bench [steps]`.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "engine/active_request.h"
#include "engine/engine_loop.h"

namespace whippet {
namespace {

constexpr int32_t kPrompt = 512;
constexpr int32_t kVocab = 50'000;

// Draws the same token always.
Runner idle_runner(std::vector<int32_t>& tokens) {
  return {.launch = [](const Batch& batch) -> Ticket { return batch.slot; },
          .sample = [&](Ticket, std::span<const SampleRow> rows) { tokens.assign(rows.size(), 5); },
          .wait =
              [&](Ticket) {
                return StepOutput{
                    .tokens = tokens, .logprobs = {}, .ranks = {}, .top_ids = {}, .top_logprobs = {}};
              }};
}

struct Case {
  int32_t num_seqs;
  bool penalties;
};

void run(const Case& c, int32_t steps) {
  CoreLimits limits{.max_model_len = kPrompt + steps + 64, .max_num_seqs = c.num_seqs};
  limits.max_num_batched_tokens = 8192;
  limits.max_num_logits = c.num_seqs + 32;
  limits.num_blocks = c.num_seqs * limits.max_blocks_per_seq();
  RequestRules rules{.limits = limits, .facts = {.name = "bench", .vocab_used = kVocab}, .seed = 1};
  rules.usual_frequencies.assign(32, 1.0f);
  rules.frequencies = [&](int32_t) { return rules.usual_frequencies; };
  Metrics metrics(limits.max_model_len);
  std::vector<int32_t> tokens;
  EngineLoop loop(idle_runner(tokens), limits, rules.facts, 32, metrics);
  for (int32_t i = 0; i < c.num_seqs; ++i) {
    CoreRequest request;
    for (int32_t t = 0; t < kPrompt; ++t) request.prompt.push_back((i * 31 + t * 7) % kVocab);
    request.params.max_tokens = steps + 64;
    request.params.ignore_eos = true;
    if (c.penalties) request.params.repetition_penalty = 1.1f;
    auto made = make_active_request(std::move(request), static_cast<uint64_t>(i) + 1, rules, Clock::now());
    WH_CHECK(made.ok(), "{}", made.error().message);
    loop.add(std::move(made).value());
  }
  while (loop.scheduler().num_waiting() > 0) loop.step();
  for (int32_t i = 0; i < 16; ++i) loop.step();

  std::vector<double> micros;
  std::vector<CoreEvent> outbox;
  for (int32_t i = 0; i < steps; ++i) {
    loop.events().clear();
    const auto begin = std::chrono::steady_clock::now();
    loop.step();
    micros.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    outbox.swap(loop.events());
  }
  std::ranges::sort(micros);
  const auto at = [&](double q) {
    return micros[static_cast<size_t>(q * static_cast<double>(micros.size() - 1))];
  };
  fmt::print("{:5} sequences{}: {:7.1f} us a step (median), {:7.1f} (p90), {:7.1f} (least)\n", c.num_seqs,
             c.penalties ? ", penalties" : "", at(0.5), at(0.9), at(0));
}

}  // namespace
}  // namespace whippet

int main(int argc, char** argv) {
  const int32_t steps = argc > 1 ? std::max(1, std::atoi(argv[1])) : 500;
  for (const bool penalties : {false, true}) {
    for (const int32_t num_seqs : {1, 64, 256, 1024}) whippet::run({num_seqs, penalties}, steps);
  }
  return 0;
}
