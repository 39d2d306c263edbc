#include "cli/bench_report.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/output.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

struct Share {
  const char* name;
  double p;
};
constexpr Share kShares[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}};

struct Measure {
  const char* name;   // in keys
  const char* shown;  // in the table
};
constexpr Measure kMeasures[] = {{"ttft", "time to first token"},
                                 {"tpot", "time per output token"},
                                 {"itl", "between two pieces"},
                                 {"e2el", "whole answer"}};

std::string key_of(const char* share, const char* measure) { return fmt::format("{}_{}_ms", share, measure); }

void add_measure(ordered_json& report, const char* name, std::vector<double>& seconds) {
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  report[key_of("mean", name)] = seconds.empty() ? 0 : 1e3 * sum / static_cast<double>(seconds.size());
  for (const Share& share : kShares) report[key_of(share.name, name)] = 1e3 * percentile(seconds, share.p);
}

}  // namespace

double percentile(std::vector<double>& values, double p) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = p * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(std::floor(at));
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - std::floor(at)) * (values[above] - values[below]);
}

ordered_json answer_times(const std::vector<BenchAnswer>& answers) {
  std::vector<double> ttft, tpot, itl, e2e;
  for (const BenchAnswer& answer : answers) {
    if (!answer.error.empty()) continue;
    ttft.push_back(answer.first_token);
    e2e.push_back(answer.end);
    itl.insert(itl.end(), answer.gaps.begin(), answer.gaps.end());
    if (answer.output_tokens > 1)
      tpot.push_back((answer.last_token - answer.first_token) / (answer.output_tokens - 1));
  }
  ordered_json times = ordered_json::object();
  std::vector<double>* values[] = {&ttft, &tpot, &itl, &e2e};
  for (size_t i = 0; i < std::size(kMeasures); ++i) add_measure(times, kMeasures[i].name, *values[i]);
  return times;
}

ordered_json bench_report(const std::vector<BenchAnswer>& answers, double seconds) {
  int64_t prompt_tokens = 0, output_tokens = 0, completed = 0;
  ordered_json errors = ordered_json::object();
  for (const BenchAnswer& answer : answers) {
    if (!answer.error.empty()) {
      errors[answer.error] = errors.value(answer.error, 0) + 1;
      continue;
    }
    ++completed;
    prompt_tokens += answer.prompt_tokens;
    output_tokens += answer.output_tokens;
  }
  const auto per_second = [&](int64_t count) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  };
  ordered_json report = {{"duration", seconds},
                         {"completed", completed},
                         {"failed", static_cast<int64_t>(answers.size()) - completed},
                         {"errors", errors},
                         {"total_input_tokens", prompt_tokens},
                         {"total_output_tokens", output_tokens},
                         {"request_throughput", per_second(completed)},
                         {"output_throughput", per_second(output_tokens)},
                         {"total_token_throughput", per_second(prompt_tokens + output_tokens)}};
  report.update(answer_times(answers));
  return report;
}

std::string bench_table(const ordered_json& report) {
  const auto number = [&](const std::string& key) { return report[key].get<double>(); };
  std::string text = fmt::format("{} answers in {:.2f} s, {} failed\n", report["completed"].dump(),
                                 number("duration"), report["failed"].dump());
  for (const auto& [kind, times] : report["errors"].items())
    text += fmt::format("  {:<26}{:>10}\n", kind, times.dump());
  text += fmt::format("  {:<26}{:>10.2f} /s\n", "requests", number("request_throughput"));
  text += fmt::format("  {:<26}{:>10.1f} /s  ({} in all)\n", "output tokens", number("output_throughput"),
                      report["total_output_tokens"].dump());
  text += fmt::format("  {:<26}{:>10.1f} /s  ({} of prompts)\n\n", "all tokens",
                      number("total_token_throughput"), report["total_input_tokens"].dump());
  return text + answer_times_table(report);
}

std::string answer_times_table(const ordered_json& report) {
  const auto number = [&](const std::string& key) { return report[key].get<double>(); };
  std::string text = fmt::format("  {:<26}{:>10}", "ms", "mean");
  for (const Share& share : kShares) text += fmt::format("{:>10}", share.name);
  for (const Measure& measure : kMeasures) {
    text += fmt::format("\n  {:<26}{:>10.2f}", measure.shown, number(key_of("mean", measure.name)));
    for (const Share& share : kShares)
      text += fmt::format("{:>10.2f}", number(key_of(share.name, measure.name)));
  }
  return text + "\n";
}

Status save_report(const std::string& path, const ordered_json& report) {
  std::ofstream file(path, std::ios::binary);
  file << json_text(report, 2) << '\n';
  file.close();
  return file ? Status() : make_error(Code::kResourceExhausted, "{} cannot be written", path);
}

}  // namespace whippet
