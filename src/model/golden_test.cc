// The decoder against what transformers computed: every family, every container, in fp32 and in bf16.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "model/checkpoint_testing.h"
#include "model/golden_testing.h"
#include "model/sequence_runner.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

constexpr double kFp32Tolerance = 1e-4;  // of the largest logit
constexpr double kBf16Unit = 0x1p-8;     // half the distance of neighbours, relative

std::string test_name(const testing::TestParamInfo<fs::path>& info) {
  const fs::path parent = info.param.parent_path();
  const bool shared = parent.parent_path().parent_path().filename() == "shared";
  std::string name = fmt::format("{}{}_{}", shared ? "shared_" : "", parent.filename().string(),
                                 info.param.filename().string());
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class GoldenTest : public testing::TestWithParam<fs::path> {
 protected:
  void load(ComputeType compute, DType kv_type) {
    Result<std::vector<Golden>> goldens = read_goldens(GetParam());
    ASSERT_TRUE(goldens.ok()) << goldens.error().message;
    goldens_ = std::move(*goldens);
    Result<GoldenModel> loaded = load_for_test(GetParam(), compute);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    loaded_ = std::move(*loaded);
    size_t longest = 0;
    for (const Golden& golden : goldens_) {
      longest = std::max(longest, golden.input_ids.size() + golden.greedy_ids.size());
    }
    runner_ = std::make_unique<SequenceRunner>(loaded_.model, *loaded_.backend, static_cast<int32_t>(longest),
                                               kv_type);
  }

  // All tokens in one pass, RoPE planned for just them: what transformers does without a cache.
  std::vector<float> recompute(const std::vector<int32_t>& ids) {
    runner_->restart(static_cast<int32_t>(ids.size()));
    return runner_->feed(ids);
  }

  const ModelSpec& spec() const { return loaded_.model.spec; }

  std::vector<Golden> goldens_;
  GoldenModel loaded_;
  std::unique_ptr<SequenceRunner> runner_;
};

TEST_P(GoldenTest, LogitsAgreeInFp32) {
  ASSERT_NO_FATAL_FAILURE(load(ComputeType::kF32, DType::kF32));
  double worst = 0;
  for (const Golden& golden : goldens_) {
    worst = std::max(worst, max_relative_error(recompute(golden.input_ids), golden.logits));
  }
  EXPECT_LE(worst, kFp32Tolerance);
  std::printf("largest difference: %.2g of the largest logit\n", worst);
}

TEST_P(GoldenTest, GreedyIdsAreEqualWhenRecomputingEverything) {
  ASSERT_NO_FATAL_FAILURE(load(ComputeType::kF32, DType::kF32));
  for (const Golden& golden : goldens_) {
    std::vector<int32_t> ids = golden.input_ids;
    std::vector<int32_t> found;
    for (size_t step = 0; step < golden.greedy_ids.size(); ++step) {
      const std::vector<float> logits = recompute(ids);
      found.push_back(argmax(std::span(logits).last(static_cast<size_t>(spec().vocab_size))));
      ids.push_back(found.back());
    }
    EXPECT_EQ(found, golden.greedy_ids);
  }
}

TEST_P(GoldenTest, GreedyIdsAreEqualWithACacheAndAnyChunks) {
  ASSERT_NO_FATAL_FAILURE(load(ComputeType::kF32, DType::kF32));
  for (const Golden& golden : goldens_) {
    const auto length = static_cast<int32_t>(golden.input_ids.size() + golden.greedy_ids.size());
    const auto steps = static_cast<int32_t>(golden.greedy_ids.size());
    // Beyond the trained length, dynamic NTK fixes a sequence's RoPE by its planned length: transformers
    // without a cache plans anew at each step, so there the chunks are held to each other.
    const bool planned =
        spec().rope.scaling == RopeScaling::kDynamicNtk && length > spec().rope.original_max_position;
    const std::vector<int32_t> expected =
        planned ? greedy(*runner_, golden.input_ids, length, steps, length) : golden.greedy_ids;
    for (const int32_t chunk : {1, 3, 5, length}) {
      EXPECT_EQ(greedy(*runner_, golden.input_ids, chunk, steps, length), expected) << "chunks of " << chunk;
    }
  }
}

// bf16 keeps 8 bits: a factor is off by up to 2^-8, a product of two by twice that. A sum of K products of
// random sign, each off by so much, is off by about as much relative to its own size, and by at most sqrt(K)
// times as much relative to the size of its factors. A logit hangs on a chain of such sums (q and k, v, o,
// gate and up, down of each layer, the head), whose errors add as a random walk: sqrt(number of sums) for the
// size of the error over all logits, sqrt(sum of their lengths) for the worst single one.
TEST_P(GoldenTest, Bf16StaysWithinTheBoundOfItsReductions) {
  ASSERT_NO_FATAL_FAILURE(load(ComputeType::kBF16, DType::kBF16));
  const int32_t layer_length = 3 * spec().hidden_size + spec().q_size() + spec().intermediate_size;
  const double sums = 5.0 * spec().num_layers + 1;
  const double lengths = static_cast<double>(layer_length) * spec().num_layers + spec().hidden_size;
  for (const Golden& golden : goldens_) {
    const std::vector<float> logits = recompute(golden.input_ids);
    const double rms = rms_relative_error(logits, golden.logits);
    const double worst = max_relative_error(logits, golden.logits);
    EXPECT_LE(rms, 2 * kBf16Unit * std::sqrt(sums));
    EXPECT_LE(worst, kBf16Unit * std::sqrt(lengths));
    std::printf("%zu tokens: rms %.2g (bound %.2g), worst %.2g (bound %.2g)\n", golden.input_ids.size(), rms,
                2 * kBf16Unit * std::sqrt(sums), worst, kBf16Unit * std::sqrt(lengths));
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenTest, testing::ValuesIn(golden_folders()), test_name);

TEST(Golden, TheProjectsOwnCheckpointsAreAllThere) {
  // So that a lost folder does not pass as a green suite.
  const std::vector<fs::path> folders = golden_folders();
  for (const char* name : {"tiny/llama-untied", "tiny/llama-tied-9heads", "tiny/llama-bias",
                           "tiny/llama3-rope", "tiny/llama-linear-rope", "tiny/llama-dynamic-ntk",
                           "tiny/qwen2-14heads", "tiny/qwen2-bf16", "tiny/qwen2-window", "tiny/qwen3",
                           "tiny/internlm2", "gguf/llama", "gguf/qwen2", "gguf/qwen3", "gguf/internlm2"}) {
    EXPECT_THAT(folders, testing::Contains(test_data(name)));
  }
}

TEST(Golden, SharedCheckpointsAreTested) {
  const fs::path shared = fs::path(WHIPPET_SOURCE_DIR) / ".." / "shared" / "data" / "tiny";
  if (!fs::exists(shared))
    GTEST_SKIP() << "no " << shared << ": the checkpoints of tests/data alone were tested";
  EXPECT_THAT(golden_folders(), testing::Contains(shared / "qwen3"));
}

TEST(Golden, Stories260kTellsItsStory) {
  const fs::path folder = fs::path(WHIPPET_SOURCE_DIR) / ".." / "shared" / "data" / "stories260k";
  if (!fs::exists(folder)) GTEST_SKIP() << "no " << folder;
  std::ifstream in(folder / "golden_greedy_from_bos.json");
  const nlohmann::json golden = nlohmann::json::parse(in);
  const std::vector<int32_t> ids = golden["ids"];
  const auto loaded = load_for_test(folder, ComputeType::kF32);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  SequenceRunner runner(loaded->model, *loaded->backend, static_cast<int32_t>(ids.size()), DType::kF32);
  const std::vector<float> first = runner.feed(std::span(ids).first(1));
  EXPECT_LE(max_relative_error(first, golden["logits_after_bos"]), kFp32Tolerance);
  const auto steps = static_cast<int32_t>(ids.size()) - 1;
  EXPECT_EQ(greedy(runner, std::span(ids).first(1), 1, steps, steps + 1),
            std::vector<int32_t>(ids.begin() + 1, ids.end()));
}

}  // namespace
}  // namespace whippet
