#include "api/kv_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backend/registry.h"
#include "model/checkpoint_testing.h"
#include "whippet/whippet.h"

namespace whippet {
namespace {

using testing::HasSubstr;

// A tiny Qwen2 whose key biases, in every layer, are `factor` times what they were.
void write_qwen2(const TempFolder& folder, float factor) {
  EditableCheckpoint checkpoint("tiny/qwen2-bf16");
  for (int layer = 0; layer < 2; ++layer) {
    const std::string name = fmt::format("model.layers.{}.self_attn.k_proj.bias", layer);
    std::vector<float> bias = checkpoint.values(name);
    for (float& value : bias) value *= factor;
    checkpoint.set_values(name, {static_cast<int64_t>(bias.size())}, bias);
  }
  checkpoint.write(folder);
}

EngineConfig config_of(const TempFolder& folder) {
  EngineConfig config;
  config.model = folder.path().string();
  config.device = "cpu";
  config.threads = 1;
  config.max_num_seqs = 4;
  config.kv_cache_dtype = "int8";
  config.packed_cache = "off";
  return config;
}

std::string failure_of(const EngineConfig& config) {
  try {
    const Engine engine(config);
  } catch (const Failure& thrown) {
    return thrown.what();
  }
  return "";
}

TEST(KvLoss, AModelThatBearsAnInt8CacheIsServedWithIt) {
  TempFolder folder;
  write_qwen2(folder, 1);
  const Engine engine(config_of(folder));
  const auto memory = nlohmann::json::parse(engine.model_info_json())["memory"];
  EXPECT_EQ(memory["kv_cache_dtype"], "int8");
  const auto bytes = memory["kv_cache_bytes"].get<int64_t>();
  const auto tokens = memory["kv_cache_tokens"].get<int64_t>();
  EXPECT_EQ(bytes, tokens * 2 * 2 * 2 * (8 + 4));  // K and V, 2 layers, 2 heads of 8 and a scale
}

TEST(KvLoss, KeysWithOutliersAreRefusedWithTheFigureTheLimitAndWhatToDo) {
  TempFolder folder;
  write_qwen2(folder, 100);
  const std::string failure = failure_of(config_of(folder));
  EXPECT_THAT(failure, HasSubstr("nats of divergence from bfloat16"));
  EXPECT_THAT(failure, HasSubstr("up to 0.05 is served"));
  EXPECT_THAT(failure, HasSubstr("use --kv-cache-dtype auto, or --force"));
  EngineConfig usual = config_of(folder);
  usual.kv_cache_dtype = "auto";
  EXPECT_EQ(failure_of(usual), "");
}

TEST(KvLoss, ForceServesThemWithAWarning) {
  TempFolder folder;
  write_qwen2(folder, 100);
  EngineConfig config = config_of(folder);
  config.force = true;
  testing::internal::CaptureStderr();
  EXPECT_EQ(failure_of(config), "");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("above the limit of 0.05: served because of --force"));
}

TEST(KvLoss, IsNothingWhereNothingChangesAndSmallInEightBits) {
  TempFolder folder;
  write_qwen2(folder, 1);
  const auto checkpoint = open_checkpoint(folder.path());
  ASSERT_TRUE(checkpoint.ok());
  const auto backend = make_backend("cpu", {.num_threads = 1, .isa = ""});
  ASSERT_TRUE(backend.ok());
  const auto model = load_model(*checkpoint, **backend, ComputeType::kAuto);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const std::vector<int32_t> ids = kv_canary(nullptr, model->spec);
  const Quality same = measure_kv_loss(*model, **backend, ids, DType::kBF16, DType::kBF16);
  EXPECT_EQ(same.tokens, static_cast<int64_t>(ids.size()) - 1);
  EXPECT_NEAR(same.mean_divergence(), 0, 1e-12);
  EXPECT_EQ(same.agreement(), 1);
  const Quality kept = measure_kv_loss(*model, **backend, ids, DType::kI8, DType::kF32);
  EXPECT_GT(kept.mean_divergence(), 0);
  EXPECT_LT(kept.mean_divergence(), kMostKvLoss);
}

TEST(KvLoss, TheCanaryFitsTheModel) {
  ModelSpec spec;
  spec.vocab_size = 7;
  spec.max_position = 20;
  const std::vector<int32_t> ids = kv_canary(nullptr, spec);
  EXPECT_EQ(ids.size(), 20u);
  EXPECT_THAT(ids, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(7))));
  EXPECT_EQ(kv_canary(nullptr, spec), ids);
  spec.max_position = 1;
  EXPECT_TRUE(kv_canary(nullptr, spec).empty());
}

}  // namespace
}  // namespace whippet
