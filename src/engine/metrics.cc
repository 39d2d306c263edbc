#include "engine/metrics.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace whippet {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr int64_t kRateSeconds = 10;

// vLLM's bounds with finer ones in front: a small model's token takes less than a millisecond.
std::vector<double> first_token_bounds() {
  return {0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,
          0.75,  1,     2.5,   5,     7.5,  10,   20,   40,   80,   160, 640,  2560};
}
std::vector<double> token_bounds() {
  return {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15,
          0.2,    0.3,    0.4,    0.5,   0.75,  1,     2.5,   5,    7.5,   10,   20,    40,  80};
}
std::vector<double> request_bounds() {
  return {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1,   1.5,  2,   2.5,
          5,     10,    15,    20,   30,   40,   50,  60,  120, 240, 480, 960, 1920, 7680};
}
std::vector<double> step_bounds() {
  return {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5};
}
// 1, 2, 5, 10, ... up to `most`.
std::vector<double> length_bounds(int32_t most) {
  std::vector<double> bounds;
  for (double decade = 1; decade <= most; decade *= 10) {
    for (const double step : {1.0, 2.0, 5.0}) {
      if (decade * step <= most) bounds.push_back(decade * step);
    }
  }
  return bounds;
}

// One writer: no locked instruction is needed.
template <class T, class U>
void bump(std::atomic<T>& counter, U more) {
  counter.store(counter.load(kRelaxed) + static_cast<T>(more), kRelaxed);
}

int64_t second_of(std::chrono::steady_clock::time_point now) {
  return std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::add(double value) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  bump(counts_[static_cast<size_t>(at)], 1);
  bump(sum_, value);
}

HistogramSnapshot Histogram::snapshot() const {
  HistogramSnapshot out{.bounds = bounds_, .counts = {}, .count = 0, .sum = sum_.load(kRelaxed)};
  for (const auto& count : counts_) {
    out.counts.push_back(count.load(kRelaxed));
    out.count += out.counts.back();
  }
  return out;
}

double HistogramSnapshot::quantile(double q) const {
  if (count == 0) return 0;
  const double rank = q * static_cast<double>(count);
  double before = 0;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const auto here = static_cast<double>(counts[i]);
    if (here > 0 && before + here >= rank) {
      const double low = i == 0 ? 0 : bounds[i - 1];
      return low + (bounds[i] - low) * std::max(0.0, rank - before) / here;
    }
    before += here;
  }
  return bounds.empty() ? 0 : bounds.back();
}

Metrics::Metrics(int32_t max_model_len)
    : ttft_(first_token_bounds()),
      inter_token_(token_bounds()),
      token_mean_(token_bounds()),
      e2e_(request_bounds()),
      queue_(request_bounds()),
      prefill_(request_bounds()),
      decode_(request_bounds()),
      inference_(request_bounds()),
      prompt_length_(length_bounds(max_model_len)),
      generation_length_(length_bounds(max_model_len)),
      max_tokens_(length_bounds(max_model_len)),
      n_({1, 2, 5, 10, 20}),
      step_tokens_({1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}),
      step_seconds_(step_bounds()) {}

void Metrics::set_gauges(const Gauges& gauges) {
  running_.store(gauges.running, kRelaxed);
  waiting_.store(gauges.waiting, kRelaxed);
  num_blocks_.store(gauges.num_blocks, kRelaxed);
  used_blocks_.store(gauges.used_blocks, kRelaxed);
  cached_blocks_.store(gauges.cached_blocks, kRelaxed);
  preemptions_.store(gauges.preemptions, kRelaxed);
}

void Metrics::add_step(const Step& step, std::chrono::steady_clock::time_point now) {
  step_prefill_.store(step.prefill_tokens, kRelaxed);
  step_decode_.store(step.decode_tokens, kRelaxed);
  bump(steps_, 1);
  bump(prompt_tokens_, step.prompt_tokens);
  bump(generation_tokens_, step.drawn_tokens);
  step_tokens_.add(step.prefill_tokens + step.decode_tokens);
  step_seconds_.add(step.seconds);

  const int64_t second = second_of(now);
  Second& slot = seconds_[static_cast<size_t>(second) % seconds_.size()];
  if (slot.second.load(kRelaxed) != second) {
    slot.second.store(-1, kRelaxed);
    slot.prompt.store(0, kRelaxed);
    slot.generation.store(0, kRelaxed);
    slot.second.store(second, kRelaxed);
  }
  bump(slot.prompt, step.prompt_tokens);
  bump(slot.generation, step.drawn_tokens);
}

void Metrics::add_request(const SamplingParams& params) {
  bump(requests_, 1);
  n_.add(params.n);
  if (params.max_tokens) max_tokens_.add(*params.max_tokens);
}

void Metrics::add_prefix(int32_t queries, int32_t hits) {
  bump(prefix_queries_, queries);
  bump(prefix_hits_, hits);
}

void Metrics::add_finished(FinishReason reason, const Usage& usage, const Timing& timing) {
  bump(finished_[static_cast<size_t>(reason)], 1);
  prompt_length_.add(usage.prompt_tokens);
  generation_length_.add(usage.completion_tokens);
  e2e_.add(timing.finished);
  queue_.add(timing.queued);
  if (usage.completion_tokens == 0) return;
  prefill_.add(timing.first_token - timing.queued);
  decode_.add(timing.finished - timing.first_token);
  inference_.add(timing.finished - timing.queued);
  if (usage.completion_tokens > 1) {
    token_mean_.add((timing.finished - timing.first_token) / (usage.completion_tokens - 1));
  }
}

EngineStats Metrics::snapshot(std::chrono::steady_clock::time_point now) const {
  EngineStats s;
  s.running = running_.load(kRelaxed);
  s.waiting = waiting_.load(kRelaxed);
  s.num_blocks = num_blocks_.load(kRelaxed);
  s.used_blocks = used_blocks_.load(kRelaxed);
  s.cached_blocks = cached_blocks_.load(kRelaxed);
  if (s.num_blocks > 0) s.kv_usage = static_cast<double>(s.used_blocks) / s.num_blocks;
  s.steps = steps_.load(kRelaxed);
  s.preemptions = preemptions_.load(kRelaxed);
  s.requests = requests_.load(kRelaxed);
  s.rejected = rejected_.load(kRelaxed);
  for (size_t i = 0; i < finished_.size(); ++i) s.finished[i] = finished_[i].load(kRelaxed);
  s.prompt_tokens = prompt_tokens_.load(kRelaxed);
  s.generation_tokens = generation_tokens_.load(kRelaxed);
  s.prefix_queries = prefix_queries_.load(kRelaxed);
  s.prefix_hits = prefix_hits_.load(kRelaxed);
  s.step_prefill_tokens = step_prefill_.load(kRelaxed);
  s.step_decode_tokens = step_decode_.load(kRelaxed);
  const int64_t second = second_of(now);
  for (const Second& slot : seconds_) {
    const int64_t age = second - slot.second.load(kRelaxed);
    if (age < 1 || age > kRateSeconds) continue;  // whole seconds only
    s.prompt_tokens_per_second += static_cast<double>(slot.prompt.load(kRelaxed)) / kRateSeconds;
    s.generation_tokens_per_second += static_cast<double>(slot.generation.load(kRelaxed)) / kRateSeconds;
  }
  s.ttft = ttft_.snapshot();
  s.inter_token = inter_token_.snapshot();
  s.token_mean = token_mean_.snapshot();
  s.e2e = e2e_.snapshot();
  s.queue = queue_.snapshot();
  s.prefill = prefill_.snapshot();
  s.decode = decode_.snapshot();
  s.inference = inference_.snapshot();
  s.prompt_length = prompt_length_.snapshot();
  s.generation_length = generation_length_.snapshot();
  s.max_tokens = max_tokens_.snapshot();
  s.n = n_.snapshot();
  s.step_tokens = step_tokens_.snapshot();
  s.step_seconds = step_seconds_.snapshot();
  return s;
}

}  // namespace whippet
