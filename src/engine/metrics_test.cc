#include "engine/metrics.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace whippet {
namespace {

TEST(Histogram, CountsByUpperBoundAndInterpolates) {
  Histogram histogram({1, 2, 4});
  for (const double value : {0.5, 1.0, 1.5, 3.0, 100.0}) histogram.add(value);
  const HistogramSnapshot snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.counts, (std::vector<uint64_t>{2, 1, 1, 1}));
  EXPECT_EQ(snapshot.count, 5u);
  EXPECT_DOUBLE_EQ(snapshot.sum, 106);
  EXPECT_DOUBLE_EQ(snapshot.quantile(0.4), 1);
  EXPECT_DOUBLE_EQ(snapshot.quantile(0.5), 1.5);
  EXPECT_DOUBLE_EQ(snapshot.quantile(1), 4);
  EXPECT_DOUBLE_EQ(HistogramSnapshot{}.quantile(0.5), 0);
}

TEST(Metrics, RatesAreOfWholeSecondsAndForgetOldOnes) {
  Metrics metrics(100);
  const std::chrono::steady_clock::time_point start{std::chrono::seconds(1000)};
  const auto at = [&](int seconds) { return start + std::chrono::seconds(seconds); };
  const Metrics::Step step{
      .prefill_tokens = 30, .decode_tokens = 5, .drawn_tokens = 6, .prompt_tokens = 30, .seconds = 0.1};
  metrics.add_step(step, at(0));
  metrics.add_step(step, at(1));
  EXPECT_DOUBLE_EQ(metrics.snapshot(at(1)).prompt_tokens_per_second, 3);
  EXPECT_DOUBLE_EQ(metrics.snapshot(at(2)).prompt_tokens_per_second, 6);
  EXPECT_DOUBLE_EQ(metrics.snapshot(at(2)).generation_tokens_per_second, 1.2);
  EXPECT_DOUBLE_EQ(metrics.snapshot(at(11)).prompt_tokens_per_second, 3);
  EXPECT_DOUBLE_EQ(metrics.snapshot(at(12)).prompt_tokens_per_second, 0);
  metrics.add_step(step, at(16));  // the slot of second 0 again
  EXPECT_DOUBLE_EQ(metrics.snapshot(at(17)).prompt_tokens_per_second, 3);
  EXPECT_EQ(metrics.snapshot(at(17)).steps, 3u);
}

TEST(Prometheus, EveryFamilyHasItsTypeOnceAndEveryLineParses) {
  Metrics metrics(1000);
  metrics.add_first_token(0.0015);
  metrics.add_inter_token(0.0003);
  metrics.add_finished(FinishReason::kStop, {.prompt_tokens = 5, .completion_tokens = 3}, {0.1, 0.2, 0.5});
  metrics.add_finished(FinishReason::kTimeout, {.prompt_tokens = 5}, {2, 0, 2});
  metrics.add_rejected();
  const std::string text = prometheus_text(metrics.snapshot({}), "a \"quoted\"\nname");
  std::istringstream lines(text);
  std::set<std::string> types;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(types.insert(line.substr(7, line.find(' ', 7) - 7)).second) << line;
    } else if (!line.starts_with("# HELP ")) {
      const size_t space = line.rfind(' ');
      ASSERT_NE(space, std::string::npos) << line;
      EXPECT_EQ(line[space - 1], '}') << line;
      char* end = nullptr;
      std::strtod(line.c_str() + space + 1, &end);
      EXPECT_EQ(*end, '\0') << line;
    }
  }
  const auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  const std::string labels = R"({model_name="a \"quoted\"\nname",engine="0")";
  EXPECT_TRUE(has("vllm:num_requests_running" + labels + "} 0\n"));
  EXPECT_TRUE(has("vllm:time_to_first_token_seconds_bucket" + labels + ",le=\"0.001\"} 0\n"));
  EXPECT_TRUE(has("vllm:time_to_first_token_seconds_bucket" + labels + ",le=\"0.002\"} 1\n"));
  EXPECT_TRUE(has("vllm:inter_token_latency_seconds_bucket" + labels + ",le=\"0.0005\"} 1\n"));
  EXPECT_TRUE(has("vllm:e2e_request_latency_seconds_count" + labels + "} 2\n"));
  EXPECT_TRUE(has("vllm:request_success_total" + labels + ",finished_reason=\"stop\"} 1\n"));
  EXPECT_TRUE(has("whippet:requests_expired_total" + labels + "} 1\n"));
  EXPECT_TRUE(has("whippet:requests_rejected_total" + labels + "} 1\n"));
  EXPECT_TRUE(has("whippet:build_info"));
}

}  // namespace
}  // namespace whippet
