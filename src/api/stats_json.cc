#include "api/stats_json.h"

#include "engine/event.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const HistogramSnapshot& histogram) {
  const double mean = histogram.count == 0 ? 0 : histogram.sum / static_cast<double>(histogram.count);
  return {{"count", histogram.count},
          {"mean", mean},
          {"p50", histogram.quantile(0.5)},
          {"p90", histogram.quantile(0.9)},
          {"p99", histogram.quantile(0.99)}};
}

}  // namespace

ordered_json stats_to_json(const EngineStats& stats) {
  ordered_json finished = ordered_json::object();
  for (const FinishReason reason : {FinishReason::kStop, FinishReason::kLength, FinishReason::kAbort,
                                    FinishReason::kTimeout, FinishReason::kError})
    finished[finish_reason_name(reason)] = stats.finished[static_cast<size_t>(reason)];
  return {{"running", stats.running},
          {"waiting", stats.waiting},
          {"preemptions", stats.preemptions},
          {"steps", stats.steps},
          {"requests", stats.requests},
          {"rejected", stats.rejected},
          {"finished", finished},
          {"prompt_tokens", stats.prompt_tokens},
          {"generation_tokens", stats.generation_tokens},
          {"prompt_tokens_per_second", stats.prompt_tokens_per_second},
          {"generation_tokens_per_second", stats.generation_tokens_per_second},
          {"kv_usage", stats.kv_usage},
          {"num_blocks", stats.num_blocks},
          {"used_blocks", stats.used_blocks},
          {"cached_blocks", stats.cached_blocks},
          {"prefix_queries", stats.prefix_queries},
          {"prefix_hits", stats.prefix_hits},
          {"step_prefill_tokens", stats.step_prefill_tokens},
          {"step_decode_tokens", stats.step_decode_tokens},
          {"ttft_seconds", to_json(stats.ttft)},
          {"inter_token_seconds", to_json(stats.inter_token)},
          {"e2e_seconds", to_json(stats.e2e)},
          {"queue_seconds", to_json(stats.queue)},
          {"step_seconds", to_json(stats.step_seconds)},
          {"step_tokens", to_json(stats.step_tokens)}};
}

}  // namespace whippet
