// How a step runs: three functions, so that tests of the policy run without a model. The real one binds a
// Decoder, a Backend and a KV cache; the fake one is in fake_runner.h. Engine thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "backend/backend.h"
#include "backend/views.h"
#include "engine/batch.h"
#include "engine/limits.h"
#include "model/loader.h"

namespace whippet {

using Ticket = int32_t;  // a launched step; at most two are known at once

// What a step drew, one entry a logit row; valid until the same ticket is launched again.
struct StepOutput {
  std::span<const int32_t> tokens;      // -1: no finite logit
  std::span<const float> logprobs;      // of the token, before temperature
  std::span<const int32_t> ranks;       // 1: the most likely
  std::span<const int32_t> top_ids;     // [rows, kMaxLogprobs]
  std::span<const float> top_logprobs;  // [rows, kMaxLogprobs]
};

struct Runner {
  std::function<Ticket(const Batch& batch)> launch;                            // starts the forward
  std::function<void(Ticket ticket, std::span<const SampleRow> rows)> sample;  // [num_logits]
  std::function<StepOutput(Ticket ticket)> wait;
};

// Takes the KV cache and every buffer of a step from the backend. model and backend must outlive the runner.
Runner make_runner(const Model& model, Backend& backend, const CoreLimits& limits, int32_t vocab_used);

}  // namespace whippet
