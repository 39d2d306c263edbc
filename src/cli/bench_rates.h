// What `whippet bench throughput` measured, and how it is printed.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/bench_answer.h"
#include "cli/bench_engine.h"
#include "cli/bench_figures.h"

namespace whippet {

// What all requests of a run were answered.
struct ThroughputRun {
  std::vector<BenchAnswer> answers;  // in the order of the requests
  double seconds = 0;                // from the first submission to the last token
  double running_seconds = 0;        // of all requests together, from their first step to their last
  double operations = 0;             // multiplications and additions
  int64_t cached_tokens = 0;         // of prompts, found in the prefix cache
  uint64_t steps = 0;                // of the engine

  // A piece of an answer. `answers` has a place for each request.
  void add(const Arrival& arrival, const ModelSpec& spec);
};

// One object: keys are those of vLLM's benchmark where they mean the same (elapsed_time, num_requests,
// total_num_tokens, requests_per_second, tokens_per_second), times those of bench_report.
nlohmann::ordered_json throughput_report(const BenchSubject& subject, const ThroughputRun& run,
                                         const cpu::MachineSpeed& machine);
std::string throughput_table(const nlohmann::ordered_json& report);

}  // namespace whippet
