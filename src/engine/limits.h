// The numbers that bound every step: what the host policy (scheduler, blocks, batch) knows of model and
// device. Fixed at start; plan_engine's answer turned into plain numbers by core_limits.
#pragma once

#include <cstdint>

#include "engine/memory.h"
#include "model/spec.h"

namespace whippet {

struct CoreLimits {
  int32_t max_model_len = 0;           // tokens of one sequence, prompt and answer
  int32_t max_num_seqs = 0;            // sequences that hold blocks and run
  int32_t max_num_batched_tokens = 0;  // rows of one step
  int32_t max_num_logits = 0;          // rows of one step whose logits are wanted
  int32_t block_size = 16;             // tokens
  int32_t num_blocks = 0;              // of the pool
  DType kv_type = DType::kF32;         // what K and V are kept in
  int32_t window = 0;                  // the widest window of any layer; 0: some layer attends to everything
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;
  double batch_wait_ms = 0;
  int32_t batch_wait_size = 0;
  bool overlap = false;
  // Steps of one row a sequence are filled up to sizes that come again, which the device then knows.
  bool round_batches = false;
  uint64_t seed = 0;  // 0: another one in every process

  int32_t max_blocks_per_seq() const { return (max_model_len + block_size - 1) / block_size; }
};

// Most logprobs that a request may ask for beside each token.
constexpr int32_t kMaxLogprobs = 20;

// num_blocks is 0 until the plan has it.
CoreLimits core_limits(const EnginePlan& plan, const ModelSpec& spec);

// Blocks that one sequence of `length` tokens holds at most at any time: all of them, or where every layer
// has a window, those of the widest window and of one step's rows.
int32_t peak_blocks(const CoreLimits& limits, int32_t length);

}  // namespace whippet
