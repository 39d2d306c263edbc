#include "serve/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"

namespace whippet::serve {
namespace {

constexpr auto kSecond = std::chrono::seconds(1);
constexpr auto kLine = std::chrono::seconds(10);
constexpr auto kAbort = std::chrono::seconds(3);  // for the errors to be sent
constexpr int32_t kMaxRetryS = 60;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

double share(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
}

}  // namespace

std::string statistics_line(const EngineCounts& before, const EngineCounts& now, double seconds) {
  const auto rate = [seconds](uint64_t from, uint64_t to) {
    return static_cast<double>(to - from) / seconds;
  };
  return fmt::format(
      "{} running, {} waiting; tokens/s: {:.0f} out, {:.0f} in; KV cache {:.0f} % used, prefix hits {:.0f} %",
      now.running, now.waiting, rate(before.generation_tokens, now.generation_tokens),
      rate(before.prompt_tokens, now.prompt_tokens), 100 * now.kv_usage,
      share(now.prefix_hits - before.prefix_hits, now.prefix_queries - before.prefix_queries));
}

Watch::Watch(Shared& shared, std::function<void()> abort, std::function<void(bool)> done)
    : shared_(shared), abort_(std::move(abort)), done_(std::move(done)) {
  last_progress_ = last_second_ = last_line_ = Clock::now();
}

void Watch::look(Clock::time_point now) {
  if (now - last_second_ >= kSecond) {
    look_at_engine(now);
    last_second_ = now;
  }
  if (shared_.gate.life() == Gate::Life::kDraining) look_at_drain(now);
}

void Watch::look_at_engine(Clock::time_point now) {
  const Service* service = shared_.service;
  if (service == nullptr) return;
  const EngineCounts counts = service->engine->counts();
  if (counts.steps != steps_ || shared_.gate.requests() == 0) last_progress_ = now;
  steps_ = counts.steps;
  shared_.stalled_s = seconds_between(last_progress_, now);

  const uint64_t left = shared_.gate.left();
  leaving_ += 0.2 * (static_cast<double>(left - left_) / seconds_between(last_second_, now) - leaving_);
  left_ = left;
  const int32_t behind = shared_.gate.inside() - service->engine->config().max_num_seqs;
  const double wait_s = std::ceil(std::max(behind, 1) / std::max(leaving_, 0.1));
  shared_.retry_after_s = static_cast<int32_t>(std::clamp(wait_s, 1.0, static_cast<double>(kMaxRetryS)));

  if (now - last_line_ < kLine) return;
  const bool busy = counts.steps != line_.steps || shared_.gate.requests() > 0;
  if (busy) log_info("{}", statistics_line(line_, counts, seconds_between(last_line_, now)));
  line_ = counts;
  last_line_ = now;
}

void Watch::look_at_drain(Clock::time_point now) {
  if (done_called_) return;
  if (!draining_) {
    draining_ = true;
    drain_began_ = now;
    log_info("stopping: {} requests have {} s to end", shared_.counters.busy.load(),
             shared_.config.shutdown_timeout_s);
  }
  const bool quiet = shared_.counters.busy == 0;
  if (!quiet && !aborted_ && seconds_between(drain_began_, now) >= shared_.config.shutdown_timeout_s) {
    log_warning("{} requests have not ended in time: they end with an error", shared_.counters.busy.load());
    aborted_ = true;
    abort_began_ = now;
    abort_();
  }
  if (!quiet && !(aborted_ && now - abort_began_ > kAbort)) return;
  done_called_ = true;
  done_(!aborted_);
}

}  // namespace whippet::serve
