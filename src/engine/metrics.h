// Counters and histograms of an engine. The engine thread writes, any thread reads (relaxed atomics: a
// snapshot may be one step torn between two numbers). Names on the wire are in prometheus.cc.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/event.h"

namespace whippet {

struct HistogramSnapshot {
  std::vector<double> bounds;    // upper bounds, ascending; a last one of infinity is implied
  std::vector<uint64_t> counts;  // [bounds + 1], each bucket alone
  uint64_t count = 0;
  double sum = 0;
  // By linear interpolation inside the bucket; 0 when empty. q in [0, 1].
  double quantile(double q) const;
};

struct EngineStats {
  int32_t running = 0;  // sequences
  int32_t waiting = 0;
  int32_t num_blocks = 0;
  int32_t used_blocks = 0;    // held by sequences
  int32_t cached_blocks = 0;  // held by nobody, still hits
  double kv_usage = 0;        // used_blocks / num_blocks
  uint64_t steps = 0;
  uint64_t preemptions = 0;
  uint64_t requests = 0;               // accepted
  uint64_t rejected = 0;               // refused: out of range, too long, malformed
  std::array<uint64_t, 6> finished{};  // answers by FinishReason
  uint64_t prompt_tokens = 0;          // of requests whose prompt is in the cache
  uint64_t generation_tokens = 0;
  uint64_t prefix_queries = 0;      // prompt tokens looked up in the prefix cache
  uint64_t prefix_hits = 0;         // and found there
  int32_t step_prefill_tokens = 0;  // rows of the last step
  int32_t step_decode_tokens = 0;
  double prompt_tokens_per_second = 0;  // over the last ten seconds
  double generation_tokens_per_second = 0;
  HistogramSnapshot ttft, inter_token, e2e, queue;  // seconds
  HistogramSnapshot prefill, decode, inference;     // seconds
  HistogramSnapshot prompt_length, generation_length, max_tokens, n;
  HistogramSnapshot step_tokens;
  HistogramSnapshot step_seconds;
};

class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);
  void add(double value);  // engine thread
  HistogramSnapshot snapshot() const;

 private:
  std::vector<double> bounds_;
  std::vector<std::atomic<uint64_t>> counts_;
  std::atomic<double> sum_ = 0;
};

// Prometheus text (version 0.0.4) of a snapshot. Labels as vLLM's: model_name, engine.
std::string prometheus_text(const EngineStats& stats, const std::string& model_name);

}  // namespace whippet
