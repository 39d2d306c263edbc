// The engine over real models, tiny ones: goldens, and the promise that an answer does not depend on what ran
// beside it, how its prompt was cut, what was cached, whether it was preempted, or the number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/engine_core.h"
#include "engine/model_testing.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> tiny_models() {
  std::vector<fs::path> folders;
  for (const char* parent : {"tests/data/tiny", "../shared/data/tiny"}) {
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(fs::path(WHIPPET_SOURCE_DIR) / parent, absent)) {
      if (fs::exists(entry.path() / "golden.jsonl")) folders.push_back(entry.path());
    }
  }
  std::ranges::sort(folders);
  return folders;
}

fs::path tiny(const char* name) { return fs::path(WHIPPET_SOURCE_DIR) / "tests/data/tiny" / name; }

TEST(ModelEngine, GreedyAnswersAreTheGoldensOfEveryFamily) {
  ASSERT_FALSE(tiny_models().empty());
  for (const fs::path& folder : tiny_models()) {
    if (folder.filename() == "qwen2-bf16") continue;  // its goldens are in another precision
    SCOPED_TRACE(folder.string());
    const TestModel model = load_test_model(folder, ComputeType::kF32, 1);
    std::vector<CoreRequest> requests;
    std::vector<std::vector<int32_t>> expected;
    std::ifstream lines(folder / "golden.jsonl");
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json json = nlohmann::json::parse(line);
      std::vector<int32_t> prompt = json["input_ids"], greedy = json["greedy_ids"];
      const int64_t room = model.model.spec.max_position - static_cast<int64_t>(prompt.size());
      if (room < 1) continue;  // goldens beyond the trained length
      greedy.resize(std::min<size_t>(greedy.size(), static_cast<size_t>(room)));
      requests.push_back(make_request(std::move(prompt), static_cast<int32_t>(greedy.size())));
      expected.push_back(std::move(greedy));
    }
    EngineConfig config;
    config.max_num_batched_tokens = 16;
    config.max_num_seqs = 4;
    config.block_size = 8;
    const CoreLimits limits = test_limits(model, config, model.model.spec.max_position + 64);
    const Answers answers = run_together(model, limits, requests, 1);
    for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(answers.of(i + 1).tokens, expected[i]) << i;
  }
}

class Invariance {
 public:
  Invariance(const fs::path& folder, ComputeType compute, int32_t window, uint32_t seed,
             bool int8_cache = false)
      : random_(seed),
        one_(load_test_model(folder, compute, 1, window)),
        two_(load_test_model(folder, compute, 2, window)) {
    if (int8_cache) one_.kv_type = two_.kv_type = DType::kI8;
  }

  void run(int32_t workloads, uint64_t& preemptions, int32_t& hits) {
    for (int32_t i = 0; i < workloads; ++i) {
      std::vector<CoreRequest> requests;
      for (int32_t k = pick(2, 9); k > 0; --k) requests.push_back(request());
      const CoreLimits limits = some_limits();
      SCOPED_TRACE(fmt::format("workload {}: {} rows, {} sequences, {} blocks of {}, overlap {}", i,
                               limits.max_num_batched_tokens, limits.max_num_seqs, limits.num_blocks,
                               limits.block_size, limits.overlap));
      uint64_t preempted = 0;
      const Answers together =
          run_together(i % 8 == 0 ? two_ : one_, limits, requests, pick(0, 3), &preempted);
      const Answers alone = run_alone(one_, requests);
      preemptions += preempted;
      for (size_t r = 0; r < requests.size(); ++r) {
        for (int32_t index = 0; index < requests[r].params.n; ++index) {
          const Answer& answer = together.of(r + 1, index);
          hits += answer.usage.cached_tokens > 0;
          ASSERT_EQ(difference(answer, alone.of(r + 1, index)), "")
              << "request " << r << ", answer " << index;
        }
      }
    }
  }

 private:
  int32_t pick(int32_t low, int32_t high) {
    return std::uniform_int_distribution<int32_t>(low, high)(random_);
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }

  CoreRequest request() {
    const int32_t vocab = one_.vocab_used;
    std::vector<int32_t> prompt;
    std::mt19937 beginning(static_cast<uint32_t>(pick(0, 1)));
    for (int32_t n = pick(1, 60); n > 0; --n) prompt.push_back(static_cast<int32_t>(beginning() % vocab));
    if (chance(0.5)) prompt.back() = pick(0, vocab - 1);
    CoreRequest request = make_request(std::move(prompt), pick(1, 30));
    SamplingParams& params = request.params;
    params.logprobs = 2;
    if (chance(0.3)) params.prompt_logprobs = 1;
    if (chance(0.2)) params.n = 2;
    if (chance(0.5)) {
      params.temperature = 0.9f;
      params.top_p = 0.9f;
      params.top_k = pick(0, 20);
    }
    if (chance(0.3)) params.repetition_penalty = 1.2f;
    if (chance(0.3)) params.frequency_penalty = 0.4f;
    if (chance(0.2)) params.min_p = 0.05f;
    if (chance(0.2)) params.banned_token_ids = {pick(0, vocab - 1)};
    if (chance(0.2)) params.logit_bias = {{pick(0, vocab - 1), 3.0f}};
    return request;
  }

  CoreLimits some_limits() {
    EngineConfig config;
    config.block_size = chance(0.5) ? 8 : 16;
    config.max_model_len = 96;
    config.max_num_batched_tokens = std::vector{1, 7, 16, 64, 1024}[static_cast<size_t>(pick(0, 4))];
    if (config.max_num_batched_tokens > 8) config.max_num_seqs = pick(1, 8);
    config.overlap = chance(0.5) ? "on" : "off";
    config.enable_prefix_caching = chance(0.8);
    return test_limits(one_, config, chance(0.6) ? 96 : 400);
  }

  std::mt19937 random_;
  TestModel one_, two_;
};

void check_invariance(const char* name, ComputeType compute, int32_t window, int32_t workloads,
                      bool int8_cache = false) {
  SCOPED_TRACE(name);
  uint64_t preemptions = 0;
  int32_t hits = 0;
  Invariance(tiny(name), compute, window, 17, int8_cache).run(workloads, preemptions, hits);
  EXPECT_TRUE(preemptions > 0 || window > 0);  // with windows everywhere blocks hardly run out
  EXPECT_GT(hits, 0);
}

TEST(ModelEngine, AnswersDoNotDependOnTheirCompany) {
  check_invariance("qwen2-14heads", ComputeType::kAuto, 0, 100);
}
TEST(ModelEngine, NorInFp32) { check_invariance("llama-tied-9heads", ComputeType::kF32, 0, 60); }
TEST(ModelEngine, NorInBf16) { check_invariance("qwen2-bf16", ComputeType::kAuto, 0, 60); }
TEST(ModelEngine, NorWithWindowsInSomeLayers) { check_invariance("qwen2-window", ComputeType::kAuto, 0, 60); }
TEST(ModelEngine, NorWithWindowsInEveryLayer) { check_invariance("qwen3", ComputeType::kAuto, 11, 60); }
TEST(ModelEngine, NorPackedAndWithScaledPositions) {
  check_invariance("internlm2", ComputeType::kAuto, 0, 40);
}

TEST(ModelEngine, NorWithAnInt8Cache) {
  check_invariance("qwen2-14heads", ComputeType::kAuto, 0, 40, true);
  check_invariance("qwen2-window", ComputeType::kAuto, 0, 20, true);
}

TEST(ModelEngine, ColdAndWarmPrefixesAnswerAlike) {
  const TestModel model = load_test_model(tiny("llama3-rope"), ComputeType::kAuto, 1);
  EngineConfig config;
  config.block_size = 8;
  const CoreLimits limits = test_limits(model, config, 1024);
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 50; ++i) prompt.push_back(i * 7 % model.vocab_used);
  CoreRequest request = make_request(prompt, 20);
  request.params.logprobs = 0;
  const Answers answers = run_together(model, limits, {request, request, request}, 25);
  EXPECT_EQ(answers.of(1).usage.cached_tokens, 0);
  EXPECT_EQ(answers.of(2).usage.cached_tokens, 48);
  EXPECT_EQ(answers.of(3).usage.cached_tokens, 48);
  EXPECT_EQ(difference(answers.of(1), answers.of(2)), "");
  EXPECT_EQ(difference(answers.of(1), answers.of(3)), "");
}

TEST(ModelEngine, PromptLogprobsAreThoseOfTheDrawnTokens) {
  // What a greedy answer was drawn with, the same tokens have as a prompt.
  const TestModel model = load_test_model(tiny("qwen3"), ComputeType::kAuto, 1);
  EngineConfig config;
  const CoreLimits limits = test_limits(model, config, 1024);
  CoreRequest request = make_request({3, 1, 4}, 12);
  request.params.logprobs = 0;
  const Answer drawn = run_together(model, limits, {request}, 0).of(1);
  request.prompt.insert(request.prompt.end(), drawn.tokens.begin(), drawn.tokens.end());
  request.params.prompt_logprobs = 3;
  const Answer read = run_together(model, limits, {request}, 0).of(1);
  ASSERT_EQ(read.prompt_logprobs.size(), 14u);
  EXPECT_TRUE(std::equal(drawn.logprobs.begin(), drawn.logprobs.end(), read.prompt_logprobs.begin() + 2));
}

TEST(ModelEngine, RunsOnItsOwnThread) {
  TestModel model = load_test_model(tiny("qwen3"), ComputeType::kF32, 1);
  EngineConfig config;
  config.kv_cache_memory.bytes = 1 << 20;
  const auto plan = plan_engine(config, model.model.spec, host_memory(model.kv_type));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  auto core = EngineCore::create(std::move(model.model), *model.backend, nullptr, *plan, {.name = "tiny"});
  ASSERT_TRUE(core.ok());
  (*core)->start();
  EXPECT_EQ((*core)->stats().steps, 0u);
  const auto id = (*core)->submit(make_request({33}, 24));
  ASSERT_TRUE(id.ok());
  Answers answers;
  std::vector<CoreEvent> batch;
  while (!answers.has(*id) || !answers.of(*id).last_of_request) {
    ASSERT_TRUE((*core)->events().take(batch));
    answers.take(batch);
  }
  EXPECT_EQ(answers.of(*id).tokens.size(), 24u);
  EXPECT_EQ((*core)->stats().steps, 24u);
}

}  // namespace
}  // namespace whippet
