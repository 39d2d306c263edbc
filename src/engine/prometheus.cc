// The metrics on the wire: vLLM's names where the meaning is the same, our own under whippet:.
// Format: prometheus.io, "Text-based format", version 0.0.4.
#include <fmt/format.h>

#include <iterator>

#include "base/version.h"
#include "engine/metrics.h"

namespace whippet {
namespace {

std::string escape_label(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out.push_back('\\');
    if (c == '\n') {
      out += "\\n";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

class Writer {
 public:
  explicit Writer(const std::string& model_name)
      : labels_(fmt::format("model_name=\"{}\",engine=\"0\"", escape_label(model_name))) {}

  void gauge(const char* name, const char* help, double value) { number(name, "gauge", help, value); }
  void counter(const char* name, const char* help, uint64_t value) {
    number(name, "counter", help, static_cast<double>(value));
  }
  void histogram(const char* name, const char* help, const HistogramSnapshot& histogram) {
    head(name, "histogram", help);
    uint64_t below = 0;
    for (size_t i = 0; i < histogram.bounds.size(); ++i) {
      below += histogram.counts[i];
      line("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels_, histogram.bounds[i], below);
    }
    line("{}_bucket{{{},le=\"+Inf\"}} {}\n", name, labels_, histogram.count);
    line("{}_sum{{{}}} {}\n", name, labels_, histogram.sum);
    line("{}_count{{{}}} {}\n", name, labels_, histogram.count);
  }
  void head(const char* name, const char* type, const char* help) {
    line("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void labelled(const char* name, const std::string& more, double value) {
    line("{}{{{},{}}} {}\n", name, labels_, more, value);
  }
  std::string take() { return std::move(text_); }

 private:
  void number(const char* name, const char* type, const char* help, double value) {
    head(name, type, help);
    line("{}{{{}}} {}\n", name, labels_, value);
  }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  std::string labels_;
  std::string text_;
};

void write_shared(Writer& w, const EngineStats& s) {
  w.gauge("vllm:num_requests_running", "Sequences that run.", s.running);
  w.gauge("vllm:num_requests_waiting", "Sequences that wait.", s.waiting);
  w.gauge("vllm:kv_cache_usage_perc", "Share of the KV cache blocks in use; 1 is all.", s.kv_usage);
  w.gauge("vllm:gpu_cache_usage_perc", "The same, by its older name.", s.kv_usage);
  w.counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.",
            s.prefix_queries);
  w.counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.", s.prefix_hits);
  w.counter("vllm:num_preemptions_total", "Sequences preempted.", s.preemptions);
  w.counter("vllm:prompt_tokens_total", "Prompt tokens processed.", s.prompt_tokens);
  w.counter("vllm:generation_tokens_total", "Tokens generated.", s.generation_tokens);
  w.head("vllm:request_success_total", "counter", "Answers that ended, by reason.");
  for (const FinishReason reason : {FinishReason::kStop, FinishReason::kLength, FinishReason::kAbort}) {
    w.labelled("vllm:request_success_total",
               fmt::format("finished_reason=\"{}\"", finish_reason_name(reason)),
               static_cast<double>(s.finished[static_cast<size_t>(reason)]));
  }
  w.histogram("vllm:iteration_tokens_total", "Tokens of a step.", s.step_tokens);
  w.histogram("vllm:time_to_first_token_seconds", "From submission to the first token.", s.ttft);
  w.histogram("vllm:inter_token_latency_seconds", "Between two tokens of an answer.", s.inter_token);
  w.histogram("vllm:time_per_output_token_seconds", "The same, by its older name.", s.inter_token);
  w.histogram("vllm:request_time_per_output_token_seconds",
              "Mean time of an answer's tokens after the first.", s.token_mean);
  w.histogram("vllm:e2e_request_latency_seconds", "From submission to the end.", s.e2e);
  w.histogram("vllm:request_queue_time_seconds", "From submission to the first step.", s.queue);
  w.histogram("vllm:request_prefill_time_seconds", "From the first step to the first token.", s.prefill);
  w.histogram("vllm:request_decode_time_seconds", "From the first token to the end.", s.decode);
  w.histogram("vllm:request_inference_time_seconds", "From the first step to the end.", s.inference);
  w.histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", s.prompt_length);
  w.histogram("vllm:request_generation_tokens", "Tokens of an answer.", s.generation_length);
  w.histogram("vllm:request_params_n", "The n of requests.", s.n);
  w.histogram("vllm:request_params_max_tokens", "The max_tokens of requests.", s.max_tokens);
}

void write_own(Writer& w, const EngineStats& s) {
  const auto finished = [&s](FinishReason reason) { return s.finished[static_cast<size_t>(reason)]; };
  w.head("whippet:build_info", "gauge", "What runs here.");
  w.labelled("whippet:build_info", fmt::format("version=\"{}\",commit=\"{}\"", release(), commit()), 1);
  w.counter("whippet:requests_accepted_total", "Requests taken.", s.requests);
  w.counter("whippet:requests_rejected_total", "Requests refused with a reason.", s.rejected);
  w.counter("whippet:requests_cancelled_total", "Answers cancelled.", finished(FinishReason::kAbort));
  w.counter("whippet:requests_expired_total", "Answers whose deadline passed.",
            finished(FinishReason::kTimeout));
  w.counter("whippet:requests_failed_total", "Answers that ended with an error.",
            finished(FinishReason::kError));
  w.counter("whippet:steps_total", "Steps run.", s.steps);
  w.histogram("whippet:step_seconds", "From the plan of a step to its result.", s.step_seconds);
  w.gauge("whippet:step_prefill_tokens", "Prompt rows of the last step.", s.step_prefill_tokens);
  w.gauge("whippet:step_decode_tokens", "Answer rows of the last step.", s.step_decode_tokens);
  w.gauge("whippet:kv_blocks", "Blocks of the KV cache.", s.num_blocks);
  w.gauge("whippet:kv_blocks_used", "Blocks held by sequences.", s.used_blocks);
  w.gauge("whippet:kv_blocks_cached", "Blocks that are hits for an equal beginning.", s.cached_blocks);
  w.gauge("whippet:prompt_tokens_per_second", "Over the last ten seconds.", s.prompt_tokens_per_second);
  w.gauge("whippet:generation_tokens_per_second", "Over the last ten seconds.",
          s.generation_tokens_per_second);
}

}  // namespace

std::string prometheus_text(const EngineStats& stats, const std::string& model_name) {
  Writer writer(model_name);
  write_shared(writer, stats);
  write_own(writer, stats);
  return writer.take();
}

}  // namespace whippet
