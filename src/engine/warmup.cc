#include "engine/warmup.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"

namespace whippet {
namespace {

constexpr int32_t kPromptTokens = 64;
constexpr int32_t kOutputTokens = 4;

SamplingParams sampled() {
  SamplingParams params;
  params.temperature = 0.7f;
  params.top_p = 0.9f;
  params.top_k = 20;
  params.min_p = 0.01f;
  params.repetition_penalty = 1.1f;
  params.presence_penalty = 0.1f;
  params.logprobs = 1;
  return params;
}

}  // namespace

void warm_up(EngineLoop& loop, const RequestRules& rules) {
  const Clock::time_point begin = Clock::now();
  loop.set_counting(false);
  const CoreLimits& limits = rules.limits;
  const int32_t output = std::min(kOutputTokens, limits.max_model_len - 1);
  const int32_t prompt =
      std::min({kPromptTokens, limits.max_model_len - output, limits.max_num_batched_tokens});
  // One alone, then several together: the widths of batch that kernels treat differently.
  uint64_t id = 0;  // those of requests begin at 1
  for (const int32_t together : {1, 1, std::min(limits.max_num_seqs, 8)}) {
    for (int32_t i = 0; i < together; ++i) {
      CoreRequest request;
      for (int32_t t = 0; t < prompt; ++t) request.prompt.push_back((t * 31 + i) % rules.facts.vocab_used);
      if (i % 2 == 1) {
        request.params = sampled();
      } else {
        request.params.temperature = 0;
      }
      request.params.max_tokens = output;
      request.params.ignore_eos = true;
      request.cache_salt = "warm-up";
      auto active = make_active_request(std::move(request), --id, rules, begin);
      WH_CHECK(active.ok(), "{}", active.error().message);
      active.value()->sequences[0]->started = true;  // no batching window for these
      loop.add(std::move(active).value());
    }
    while (loop.has_requests()) loop.step();
  }
  const int32_t shapes = loop.run_shapes();
  loop.events().clear();
  loop.set_counting(true);
  log_debug("warm-up took {:.0f} ms, {} shapes of steps recorded",
            std::chrono::duration<double, std::milli>(Clock::now() - begin).count(), shapes);
}

}  // namespace whippet
