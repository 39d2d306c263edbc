// Times the forward pass of a model for a batch of equal sequences, without an engine around it: the prompts
// in chunks, then one token of each at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "model/decoder.h"
#include "model/loader.h"

namespace whippet {

struct StepWork {
  int32_t prompt_len = 512;
  int32_t output_len = 64;
  int32_t batch = 1;
};

struct PromptTimes {
  double first = 0;  // seconds until the first sequence has a token
  double all = 0;    // seconds until every sequence has one
};

// Owns the activations and the KV cache, taken once. The model and the backend must outlive it.
class StepBench {
 public:
  StepBench(const Model& model, Backend& backend, const StepWork& work, DType kv_type);
  PromptTimes prompts();
  // Seconds of each of the output_len - 1 steps behind them, one token of every sequence a step.
  std::vector<double> answers();

 private:
  // Rows [first, first + count) of sequence `sequence`, or (sequence < 0) one row of each at position first.
  void step(int32_t sequence, int32_t first, int32_t count, bool sample);

  const Model& model_;
  Backend& backend_;
  StepWork work_;
  Decoder decoder_;
  int32_t blocks_per_sequence_ = 0;
  std::vector<Buffer> cache_memory_;
  std::vector<KvCacheView> caches_;
  std::vector<float> inv_freq_;
  Buffer inputs_, ids_, tokens_, frequencies_;
};

}  // namespace whippet
