// How much memory the KV cache takes and how long a sequence may be: from an EngineConfig with holes to one
// without. Pure arithmetic over facts; a formula and its numbers are part of the answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/linear_weight.h"
#include "base/error.h"
#include "model/spec.h"
#include "tensor/dtype.h"
#include "whippet/config.h"

namespace whippet {

struct MemoryFacts {
  bool gpu = false;
  uint64_t total = 0;           // bytes of the device, or of host and cgroup
  uint64_t available = 0;       // bytes that nobody uses now, weights already loaded
  DType kv_type = DType::kF32;  // what K and V are kept in
};

// What K and V are kept in: the type that the model is computed in; half precision for quantised weights.
DType kv_type_of(ComputeType compute, const ModelSpec& spec);

// What they are kept in under config.kv_cache_dtype; `computed` is what auto means. kUnsupported where the
// device keeps nothing else.
Result<DType> read_kv_type(const EngineConfig& config, DType computed, bool gpu);

// What the host and this process's cgroup (v2 or v1) leave. `root` is "/" outside of tests.
MemoryFacts host_memory(DType kv_type, const std::string& root = "/");
// The backend's own memory, or the host's where it has none.
MemoryFacts memory_of(const Backend& backend, DType kv_type);

struct EnginePlan {
  EngineConfig config;     // every default filled in
  int32_t num_blocks = 0;  // of config.block_size tokens
  uint64_t kv_bytes = 0;   // over all layers
  bool gpu = false;        // computes
  DType kv_type = DType::kF32;
  std::vector<std::string> notes;  // lines for the log: the formula, and what was changed with what to do
};

// A default max_model_len that does not fit becomes the largest that does, with a note; an explicit one is
// kResourceExhausted with the arithmetic. Other impossible values are kInvalidArgument and name the knob.
// `spec` already has the windows of config.sliding_window (apply_sliding_window).
Result<EnginePlan> plan_engine(const EngineConfig& config, const ModelSpec& spec, const MemoryFacts& facts);

// Limits every layer's window to config.sliding_window, where that is set.
void apply_sliding_window(const EngineConfig& config, ModelSpec& spec);

}  // namespace whippet
