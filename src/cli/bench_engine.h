// An Engine as benchmarks use it: what they measure, what they ask, and when each piece of an answer came.
// For `whippet bench latency` and `bench throughput`.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/bench_figures.h"
#include "whippet/whippet.h"

namespace whippet {

// The machine as `config` uses it; all zero where that is no CPU. Asked before the engine is there, which
// would take part of its memory bandwidth.
Result<cpu::MachineSpeed> measure_machine_of(const EngineConfig& config);

// machine: becomes all zero where the engine does not run on a CPU.
BenchSubject subject_of(const Engine& engine, cpu::MachineSpeed& machine);

// Random ids, an answer of exactly output_len tokens, greedy.
Request random_request(int32_t prompt_len, int32_t output_len, int32_t vocab, std::mt19937_64& random);

// kInvalidArgument where a prompt and its answer are longer than the engine's sequences: `asked` says whose
// they are, and the message what to do.
Status check_length(const Engine& engine, const std::string& asked, int64_t prompt_len, int64_t output_len);

// A piece of an answer and when it came.
struct Arrival {
  size_t request = 0;
  size_t tokens = 0;
  double seconds = 0;  // since the first submission
  bool last = false;   // of its request; what follows is set then
  Usage usage;
  Timing timing;
  std::string error;
};

// Submits all requests at once and gives every piece to `take`, in order of time, on this thread. Ends with
// the first request that fails, by its message.
Status answer_all(Engine& engine, std::vector<Request> requests,
                  const std::function<void(const Arrival&)>& take);

}  // namespace whippet
