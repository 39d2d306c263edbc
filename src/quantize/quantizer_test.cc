// The quantizer over the small checkpoints of tests/data: what it writes is loaded again.
#include "quantize/quantizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <random>

#include "model/checkpoint_testing.h"
#include "model/golden_testing.h"
#include "model/loader.h"
#include "model/sequence_runner.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::vector<int32_t>> random_sequences(int32_t vocab) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int32_t> token(0, vocab - 1);
  std::vector<std::vector<int32_t>> sequences(6, std::vector<int32_t>(24));
  for (auto& ids : sequences)
    for (int32_t& id : ids) id = token(random);
  return sequences;
}

QuantizeOptions options_for(const fs::path& out, int32_t bits) {
  QuantizeOptions options;
  options.grid = {.bits = bits, .group = 32, .symmetric = true};
  options.sequences = random_sequences(64);
  options.out = out;
  options.num_threads = 2;
  return options;
}

Result<std::vector<LinearError>> quantize(const fs::path& model, const QuantizeOptions& options) {
  Result<Checkpoint> checkpoint = open_checkpoint(model);
  EXPECT_TRUE(checkpoint.ok());
  return quantize_model(std::move(*checkpoint), options);
}

std::vector<float> logits_of(const fs::path& path) {
  Result<GoldenModel> loaded = load_for_test(path, ComputeType::kF32);
  EXPECT_TRUE(loaded.ok()) << loaded.error().message;
  SequenceRunner runner(loaded->model, *loaded->backend, 24, DType::kF32);
  return runner.feed(random_sequences(64)[0]);
}

TEST(Quantizer, EveryFamilyIsCloseToItselfInEightBits) {
  for (const char* name : {"internlm2", "llama-bias", "llama-dynamic-ntk", "llama-tied-9heads",
                           "qwen2-14heads", "qwen2-bf16", "qwen2-window", "qwen3"}) {
    SCOPED_TRACE(name);
    const TempFolder folder;
    const fs::path source = test_data(std::string("tiny/") + name);
    const auto errors = quantize(source, options_for(folder.path() / "out", 8));
    ASSERT_TRUE(errors.ok()) << errors.error().message;
    for (const LinearError& error : *errors) EXPECT_LT(error.error, 1e-3) << error.name;
    EXPECT_LT(rms_relative_error(logits_of(folder.path() / "out"), logits_of(source)), 0.03);
    EXPECT_FALSE(fs::exists(folder.path() / "out.partial"));
  }
}

TEST(Quantizer, FourBitsLoseLessThanRoundingInSum) {
  for (const bool act_order : {false, true}) {
    const TempFolder folder;
    QuantizeOptions options = options_for(folder.path() / "gptq", 4);
    options.act_order = act_order;
    options.grid.symmetric = !act_order;
    const auto errors = quantize(test_data("tiny/qwen2-14heads"), options);
    ASSERT_TRUE(errors.ok()) << errors.error().message;
    EXPECT_EQ(errors->size(), 14u);
    double sum = 0, rounding = 0;
    for (const LinearError& error : *errors) {
      sum += error.error;
      rounding += error.rounding_error;
    }
    EXPECT_LT(sum, rounding);
    EXPECT_LT(
        rms_relative_error(logits_of(folder.path() / "gptq"), logits_of(test_data("tiny/qwen2-14heads"))),
        0.5);
  }
}

TEST(Quantizer, TheConfigSaysHowAndEverythingElseIsKept) {
  const TempFolder folder, model;
  EditableCheckpoint source("tiny/internlm2");
  source.write(model, 2);
  model.write("tokenizer_config.json", "{}");
  model.write("code.py", "pass");
  model.write("pytorch_model.bin", "weights");
  QuantizeOptions options = options_for(folder.path() / "out", 4);
  options.act_order = true;
  ASSERT_TRUE(quantize(model.path(), options).ok());
  const fs::path out = folder.path() / "out";
  const json said = json::parse(bytes_of(out / "config.json"))["quantization_config"];
  EXPECT_EQ(said["quant_method"], "gptq");
  EXPECT_EQ(said["bits"], 4);
  EXPECT_EQ(said["group_size"], 32);
  EXPECT_EQ(said["desc_act"], true);
  EXPECT_EQ(said["sym"], true);
  EXPECT_EQ(said["lm_head"], false);
  EXPECT_EQ(bytes_of(out / "code.py"), "pass");
  EXPECT_TRUE(fs::exists(out / "tokenizer_config.json"));
  EXPECT_FALSE(fs::exists(out / "pytorch_model.bin"));
  EXPECT_FALSE(fs::exists(out / "model.safetensors.index.json"));

  const auto written = open_checkpoint(out);
  ASSERT_TRUE(written.ok());
  EXPECT_NE(bytes_of(out / "model.safetensors").find(R"("__metadata__":{"format":"pt"})"), std::string::npos);
  EXPECT_EQ(written->find("model.layers.0.attention.wqkv.weight"), nullptr);
  ASSERT_NE(written->find("model.layers.1.attention.wqkv.qweight"), nullptr);
  for (const auto& [name, tensor] : source.tensors) {
    const TensorView* kept = written->find(name);
    if (kept == nullptr) continue;
    EXPECT_TRUE(std::equal(kept->data.begin(), kept->data.end(), tensor.data.begin(), tensor.data.end()));
  }
  EXPECT_NE(written->find("model.tok_embeddings.weight"), nullptr);
}

TEST(Quantizer, RoundingNeedsNoCalibration) {
  const TempFolder folder;
  QuantizeOptions options = options_for(folder.path() / "out", 8);
  options.gptq = false;
  options.sequences.clear();
  const auto errors = quantize(test_data("tiny/qwen3"), options);
  ASSERT_TRUE(errors.ok()) << errors.error().message;
  for (const LinearError& error : *errors) {
    EXPECT_EQ(error.error, error.rounding_error);
    EXPECT_GT(error.error, 0);
    EXPECT_LT(error.error, 1e-4);
  }
  EXPECT_LT(rms_relative_error(logits_of(folder.path() / "out"), logits_of(test_data("tiny/qwen3"))), 0.03);
}

// Breaks off in layer 1, and goes on once its weights are whole.
TEST(Quantizer, GoesOnWhereItWasInterrupted) {
  const TempFolder folder, model;
  EditableCheckpoint source("tiny/llama-untied");
  const std::string name = "model.layers.1.mlp.down_proj.weight";
  const std::vector<float> whole = source.values(name);
  const std::vector<int64_t> shape = source.tensors.at(name).shape;
  source.set_values(name, shape, whole);
  source.write(model);
  const QuantizeOptions fresh = options_for(folder.path() / "fresh", 4);
  ASSERT_TRUE(quantize(model.path(), fresh).ok());

  std::vector<float> broken = whole;
  broken[3] = std::numeric_limits<float>::quiet_NaN();
  source.set_values(name, shape, broken);
  source.write(model);
  const QuantizeOptions options = options_for(folder.path() / "out", 4);
  const auto failed = quantize(model.path(), options);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr(name));
  EXPECT_FALSE(fs::exists(folder.path() / "out"));

  source.set_values(name, shape, whole);
  source.write(model);
  const fs::path report = folder.path() / "out.partial" / "layer-0.json";
  json rows = json::parse(bytes_of(report));
  rows[0][1] = 0.625;  // nobody measures this layer again
  std::ofstream(report) << rows.dump();

  QuantizeOptions other = options;
  other.grid.group = 64;
  const auto refused = quantize(model.path(), other);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("with other settings"));

  const auto errors = quantize(model.path(), options);
  ASSERT_TRUE(errors.ok()) << errors.error().message;
  EXPECT_EQ(errors->at(0).error, 0.625);
  EXPECT_EQ(bytes_of(folder.path() / "out" / "model.safetensors"),
            bytes_of(folder.path() / "fresh" / "model.safetensors"));
  EXPECT_FALSE(fs::exists(folder.path() / "out.partial"));
}

TEST(Quantizer, WhatCannotBeQuantisedIsNamed) {
  const TempFolder folder;
  const auto message = [&](const fs::path& model, const QuantizeOptions& options) {
    const auto errors = quantize(model, options);
    return errors.ok() ? "" : errors.error().message;
  };
  const QuantizeOptions options = options_for(folder.path() / "out", 4);
  EXPECT_THAT(message(test_data("tiny/llama-tied-9heads"), options), HasSubstr("try --bits 8"));
  QuantizeOptions alien = options;
  alien.sequences = {{1, 64}};
  EXPECT_THAT(message(test_data("tiny/qwen3"), alien), HasSubstr("token id 64 is outside"));
  ASSERT_TRUE(quantize(test_data("tiny/internlm2"), options).ok());
  EXPECT_THAT(message(test_data("tiny/internlm2"), options), HasSubstr("is there already"));
  const QuantizeOptions again = options_for(folder.path() / "again", 4);
  EXPECT_THAT(message(folder.path() / "out", again), HasSubstr("is stored as gptq"));
  EXPECT_FALSE(fs::exists(folder.path() / "again.partial"));
}

TEST(Quantizer, AnEmptyFolderIsFilled) {
  const TempFolder folder;
  fs::create_directories(folder.path() / "out");
  ASSERT_TRUE(quantize(test_data("tiny/qwen3"), options_for(folder.path() / "out/", 8)).ok());
  EXPECT_TRUE(fs::exists(folder.path() / "out" / "config.json"));
}

}  // namespace
}  // namespace whippet
