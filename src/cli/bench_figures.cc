#include "cli/bench_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/bench_shape.h"

namespace whippet {

using nlohmann::ordered_json;

Result<std::vector<int32_t>> parse_counts(const std::string& flag, const std::string& text, int32_t most) {
  std::vector<int32_t> counts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    int32_t count = 0;
    const auto [stop, problem] = std::from_chars(text.data() + at, text.data() + end, count);
    if (problem != std::errc() || stop != text.data() + end || count < 1 || count > most)
      return make_error(Code::kInvalidArgument,
                        "{} {}: expected numbers from 1 to {}, with commas between them", flag, text, most);
    counts.push_back(count);
    at = end + 1;
  }
  return counts;
}

std::vector<LatencyWork> combine(const std::vector<int32_t>& prompts, const std::vector<int32_t>& outputs,
                                 const std::vector<int32_t>& batches) {
  std::vector<LatencyWork> all;
  for (const int32_t prompt : prompts)
    for (const int32_t output : outputs)
      for (const int32_t batch : batches) all.push_back({prompt, output, batch});
  return all;
}

double peak_of(DType inputs, const cpu::MachineSpeed& machine) {
  if (inputs == DType::kI8) return machine.dot_gops;
  return inputs == DType::kBF16 ? machine.pair_gflops : machine.fma_gflops;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

ordered_json latency_report(const BenchSubject& subject, const LatencyWork& work,
                            const std::vector<LatencyRun>& runs, const cpu::MachineSpeed& machine) {
  std::vector<double> ttft, prefill, decode;
  for (const LatencyRun& run : runs) {
    ttft.push_back(run.ttft);
    prefill.push_back(run.prefill);
    decode.push_back(run.decode);
  }
  const double steps = median(decode) / work.batch;
  const double read = subject.weight_bytes * steps / 1e9;
  const double prefill_gops =
      work.batch * prompt_operations(subject.spec, work.prompt_len) / median(prefill) / 1e9;
  const double decode_gops = token_operations(subject.spec) * median(decode) / 1e9;
  ordered_json report = {
      {"model", subject.model},
      {"device", subject.device},
      {"dtype", subject.dtype},
      {"quantization", subject.quantization},
      {"prompt_len", work.prompt_len},
      {"output_len", work.output_len},
      {"batch", work.batch},
      {"repeat", runs.size()},
      {"prefill_tokens_per_s", work.batch * work.prompt_len / median(prefill)},
      {"decode_tokens_per_s", median(decode)},
      {"ttft_ms", median(ttft) * 1e3},
      {"step_ms", steps > 0 ? 1e3 / steps : 0},
      {"weight_bytes", static_cast<uint64_t>(subject.weight_bytes)},
      {"read_gb_per_s", read},
      {"machine_read_gb_per_s", machine.read_gb_per_s},
      {"read_bandwidth_share", machine.read_gb_per_s > 0 ? read / machine.read_gb_per_s : 0},
      {"prefill_gops", prefill_gops},
      {"decode_gops", decode_gops},
      {"machine_int8_gops", machine.dot_gops},
      {"machine_bf16_gops", machine.pair_gflops},
      {"machine_fp32_gops", machine.fma_gflops}};
  if (subject.peak_gops > 0) {
    report["prefill_peak_share"] = prefill_gops / subject.peak_gops;
    report["decode_peak_share"] = decode_gops / subject.peak_gops;
  }
  return report;
}

std::string latency_table(const ordered_json& r) {
  const auto number = [&](const char* key) { return r[key].get<double>(); };
  const auto text = [&](const char* key) { return r[key].get<std::string>(); };
  const auto peak = [&](const char* key) {
    return r.contains(key) ? fmt::format(", {:.0f} % of the peak", 100 * number(key)) : std::string();
  };
  return fmt::format(
      "{} on {}, dtype {}{}\n"
      "batch {}, prompt {} tokens, answer {} tokens, median of {} runs\n"
      "  time to first token   {:>9.1f} ms\n"
      "  prefill               {:>9.1f} tokens/s ({:.0f} Gop/s{})\n"
      "  decode                {:>9.1f} tokens/s ({:.2f} ms a step, {:.0f} Gop/s{})\n"
      "  weights read          {:>9.1f} GB/s, {:.0f} % of the {:.1f} GB/s that this machine reads\n",
      text("model"), text("device"), text("dtype"),
      text("quantization").empty() ? "" : ", quantization " + text("quantization"), r["batch"].dump(),
      r["prompt_len"].dump(), r["output_len"].dump(), r["repeat"].dump(), number("ttft_ms"),
      number("prefill_tokens_per_s"), number("prefill_gops"), peak("prefill_peak_share"),
      number("decode_tokens_per_s"), number("step_ms"), number("decode_gops"), peak("decode_peak_share"),
      number("read_gb_per_s"), 100 * number("read_bandwidth_share"), number("machine_read_gb_per_s"));
}

}  // namespace whippet
