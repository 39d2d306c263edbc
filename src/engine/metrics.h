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

struct EngineStats {
  int32_t running = 0;  // sequences
  int32_t waiting = 0;
  int32_t num_blocks = 0;
  int32_t used_blocks = 0;    // held by sequences
  int32_t cached_blocks = 0;  // hits for an equal beginning, held or not
  double kv_usage = 0;        // used_blocks / num_blocks
  uint64_t steps = 0;
  uint64_t preemptions = 0;
  uint64_t requests = 0;               // accepted
  uint64_t rejected = 0;               // refused: out of range, too long, malformed
  std::array<uint64_t, 6> finished{};  // answers by FinishReason
  uint64_t prompt_tokens = 0;          // of requests whose prompt has been computed
  uint64_t generation_tokens = 0;
  uint64_t prefix_queries = 0;          // prompt tokens looked up in the prefix cache
  uint64_t prefix_hits = 0;             // and found there
  int32_t step_prefill_tokens = 0;      // rows of the last step: prompts and recomputation,
  int32_t step_decode_tokens = 0;       // and one a running answer
  double prompt_tokens_per_second = 0;  // over the last ten seconds
  double generation_tokens_per_second = 0;
  HistogramSnapshot ttft, inter_token, token_mean;           // seconds; token_mean: of a request's answer
  HistogramSnapshot e2e, queue, prefill, decode, inference;  // seconds, of a request
  HistogramSnapshot prompt_length, generation_length, max_tokens, n;
  HistogramSnapshot step_tokens, step_seconds;
};

// The engine's own, live numbers. Everything but `rejected` is written by the engine thread alone.
class Metrics {
 public:
  explicit Metrics(int32_t max_model_len);

  struct Gauges {
    int32_t running, waiting, num_blocks, used_blocks, cached_blocks;
    uint64_t preemptions;
  };
  void set_gauges(const Gauges& gauges);
  struct Step {
    int32_t prefill_tokens, decode_tokens, drawn_tokens, prompt_tokens;
    double seconds;
  };
  void add_step(const Step& step, std::chrono::steady_clock::time_point now);
  void add_request(const SamplingParams& params);
  void add_prefix(int32_t queries, int32_t hits);
  void add_first_token(double seconds) { ttft_.add(seconds); }
  void add_inter_token(double seconds) { inter_token_.add(seconds); }
  // An answer has ended.
  void add_finished(FinishReason reason, const Usage& usage, const Timing& timing);
  void add_rejected() { rejected_.fetch_add(1, std::memory_order_relaxed); }  // any thread

  EngineStats snapshot(std::chrono::steady_clock::time_point now) const;

 private:
  struct Second {  // tokens of one second of the clock
    std::atomic<int64_t> second = -1;
    std::atomic<uint64_t> prompt = 0, generation = 0;
  };
  using Counter = std::atomic<uint64_t>;

  std::atomic<int32_t> running_ = 0, waiting_ = 0, num_blocks_ = 0, used_blocks_ = 0, cached_blocks_ = 0;
  std::atomic<int32_t> step_prefill_ = 0, step_decode_ = 0;
  Counter steps_ = 0, preemptions_ = 0, requests_ = 0, rejected_ = 0, prompt_tokens_ = 0;
  Counter generation_tokens_ = 0, prefix_queries_ = 0, prefix_hits_ = 0;
  std::array<Counter, 6> finished_{};
  std::array<Second, 16> seconds_;
  Histogram ttft_, inter_token_, token_mean_, e2e_, queue_, prefill_, decode_, inference_;
  Histogram prompt_length_, generation_length_, max_tokens_, n_, step_tokens_, step_seconds_;
};

// Prometheus text (version 0.0.4) of a snapshot. Labels as vLLM's: model_name, engine.
std::string prometheus_text(const EngineStats& stats, const std::string& model_name);

}  // namespace whippet
