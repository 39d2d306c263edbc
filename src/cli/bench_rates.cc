#include "cli/bench_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/bench_report.h"
#include "cli/bench_shape.h"

namespace whippet {

using nlohmann::ordered_json;

void ThroughputRun::add(const Arrival& arrival, const ModelSpec& spec) {
  BenchAnswer& answer = answers[arrival.request];
  if (arrival.tokens > 0) {
    if (answer.output_tokens == 0)
      answer.first_token = arrival.seconds;
    else
      answer.gaps.push_back(arrival.seconds - answer.last_token);
    answer.last_token = arrival.seconds;
    answer.output_tokens += static_cast<int32_t>(arrival.tokens);
  }
  if (!arrival.last) return;
  answer.end = arrival.seconds;
  answer.prompt_tokens = arrival.usage.prompt_tokens;
  seconds = std::max(seconds, arrival.seconds);
  running_seconds += arrival.timing.finished - arrival.timing.queued;
  cached_tokens += arrival.usage.cached_tokens;
  operations += request_operations(spec, arrival.usage.cached_tokens, answer.prompt_tokens,
                                   std::max(answer.output_tokens, 1));
}

ordered_json throughput_report(const BenchSubject& subject, const ThroughputRun& run,
                               const cpu::MachineSpeed& machine) {
  int64_t inputs = 0, outputs = 0;
  for (const BenchAnswer& answer : run.answers) {
    inputs += answer.prompt_tokens;
    outputs += answer.output_tokens;
  }
  const auto per_second = [&](double count) { return run.seconds > 0 ? count / run.seconds : 0; };
  const double requests = static_cast<double>(run.answers.size()), steps = static_cast<double>(run.steps);
  const double read = per_second(subject.weight_bytes * steps) / 1e9;
  const double gops = per_second(run.operations) / 1e9;
  ordered_json report = {{"model", subject.model},
                         {"device", subject.device},
                         {"dtype", subject.dtype},
                         {"quantization", subject.quantization},
                         {"elapsed_time", run.seconds},
                         {"num_requests", run.answers.size()},
                         {"total_num_tokens", inputs + outputs},
                         {"requests_per_second", per_second(requests)},
                         {"tokens_per_second", per_second(static_cast<double>(inputs + outputs))},
                         {"output_tokens_per_second", per_second(static_cast<double>(outputs))},
                         {"total_input_tokens", inputs},
                         {"total_output_tokens", outputs},
                         {"cached_tokens", run.cached_tokens},
                         {"mean_batch_size", per_second(run.running_seconds)},
                         {"steps", run.steps},
                         {"step_ms", steps > 0 ? 1e3 * run.seconds / steps : 0},
                         {"weight_bytes", static_cast<uint64_t>(subject.weight_bytes)},
                         {"read_gb_per_s", read},
                         {"gops", gops}};
  if (machine.read_gb_per_s > 0) {
    report.update({{"machine_read_gb_per_s", machine.read_gb_per_s},
                   {"read_bandwidth_share", read / machine.read_gb_per_s},
                   {"machine_int8_gops", machine.dot_gops},
                   {"machine_bf16_gops", machine.pair_gflops},
                   {"machine_fp32_gops", machine.fma_gflops}});
    if (subject.peak_gops > 0) report["peak_share"] = gops / subject.peak_gops;
  }
  report.update(answer_times(run.answers));
  return report;
}

std::string throughput_table(const ordered_json& r) {
  const auto number = [&](const char* key) { return r[key].get<double>(); };
  const auto text = [&](const char* key) { return r[key].get<std::string>(); };
  const bool shares = r.contains("read_bandwidth_share");
  std::string table = fmt::format(
      "{} on {}, dtype {}{}\n"
      "{} requests in {:.2f} s, {:.1f} at a time in the mean\n"
      "  {:<26}{:>10.2f} /s\n"
      "  {:<26}{:>10.1f} /s  ({} in all)\n"
      "  {:<26}{:>10.1f} /s  ({} of prompts{})\n",
      text("model"), text("device"), text("dtype"),
      text("quantization").empty() ? "" : ", quantization " + text("quantization"), r["num_requests"].dump(),
      number("elapsed_time"), number("mean_batch_size"), "requests", number("requests_per_second"),
      "output tokens", number("output_tokens_per_second"), r["total_output_tokens"].dump(), "all tokens",
      number("tokens_per_second"), r["total_input_tokens"].dump(),
      number("cached_tokens") > 0 ? fmt::format(", {} of them in the prefix cache", r["cached_tokens"].dump())
                                  : "");
  table += fmt::format("  {:<26}{:>10} of {:.2f} ms\n", "steps", r["steps"].dump(), number("step_ms"));
  table += fmt::format("  {:<26}{:>10.1f} GB/s", "weights read", number("read_gb_per_s"));
  if (shares)
    table += fmt::format(", {:.0f} % of the {:.1f} GB/s that this machine reads",
                         100 * number("read_bandwidth_share"), number("machine_read_gb_per_s"));
  table += fmt::format("\n  {:<26}{:>10.0f} Gop/s", "products and sums", number("gops"));
  if (r.contains("peak_share")) table += fmt::format(", {:.0f} % of the peak", 100 * number("peak_share"));
  return table + "\n\n" + answer_times_table(r);
}

}  // namespace whippet
