#include "model/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "backend/registry.h"
#include "base/log.h"
#include "model/checkpoint_testing.h"
#include "model/golden_testing.h"
#include "model/sequence_runner.h"

namespace whippet {
namespace {

using testing::HasSubstr;

Result<GoldenModel> load(const EditableCheckpoint& checkpoint, int shards = 1) {
  const TempFolder folder;
  checkpoint.write(folder, shards);
  return load_for_test(folder.path(), ComputeType::kF32);
}

Error refusal(const EditableCheckpoint& checkpoint) {
  const Result<GoldenModel> loaded = load(checkpoint);
  EXPECT_FALSE(loaded.ok());
  return loaded.ok() ? Error{} : loaded.error();
}

std::vector<float> logits_of(const GoldenModel& loaded) {
  const std::vector<int32_t> ids = {5, 9, 33, 21, 7};
  SequenceRunner runner(loaded.model, *loaded.backend, 5, DType::kF32);
  return runner.feed(ids);
}

std::vector<float> logits_of(const EditableCheckpoint& checkpoint, int shards = 1) {
  const Result<GoldenModel> loaded = load(checkpoint, shards);
  EXPECT_TRUE(loaded.ok()) << loaded.error().message;
  return loaded.ok() ? logits_of(*loaded) : std::vector<float>();
}

TEST(Loader, ShardsLoadLikeOneFile) {
  const EditableCheckpoint checkpoint("tiny/llama-untied");
  EXPECT_EQ(logits_of(checkpoint, 3), logits_of(checkpoint));
}

TEST(Loader, AMissingTensorIsNamed) {
  for (const char* name :
       {"model.layers.1.mlp.up_proj.weight", "model.layers.0.self_attn.k_proj.weight", "model.norm.weight",
        "model.layers.1.input_layernorm.weight", "model.embed_tokens.weight"}) {
    EditableCheckpoint checkpoint("tiny/llama-untied");
    checkpoint.tensors.erase(name);
    const Error error = refusal(checkpoint);
    EXPECT_EQ(error.code, Code::kNotFound);
    EXPECT_THAT(error.message, HasSubstr(name));
  }
}

TEST(Loader, AMissingBiasIsNamed) {
  EditableCheckpoint checkpoint("tiny/qwen2-bf16");
  checkpoint.tensors.erase("model.layers.1.self_attn.v_proj.bias");
  EXPECT_THAT(refusal(checkpoint).message, HasSubstr("model.layers.1.self_attn.v_proj.bias"));
}

TEST(Loader, AWrongShapeIsNamedWithExpectedAndFound) {
  EditableCheckpoint checkpoint("tiny/llama-untied");
  checkpoint.set_values("model.layers.1.mlp.down_proj.weight", {32, 41}, std::vector<float>(32 * 41));
  const Error error = refusal(checkpoint);
  EXPECT_EQ(error.code, Code::kCorrupt);
  EXPECT_THAT(
      error.message,
      HasSubstr(
          "model.layers.1.mlp.down_proj.weight: expected shape [32, 40] from the config, found [32, 41]"));
  EditableCheckpoint norm("tiny/llama-untied");
  norm.set_values("model.norm.weight", {31}, std::vector<float>(31));
  EXPECT_THAT(refusal(norm).message, HasSubstr("model.norm.weight: expected shape [32], found [31]"));
}

TEST(Loader, AnEmbeddingThatIsNotAsLargeAsTheConfigSaysIsAnErrorNamingBoth) {
  EditableCheckpoint checkpoint("tiny/llama-untied");
  checkpoint.config["vocab_size"] = 65;
  EXPECT_THAT(
      refusal(checkpoint).message,
      HasSubstr("model.embed_tokens.weight: expected shape [65, 32] from the config, found [64, 32]"));
}

TEST(Loader, ATypeThatIsNoWeightIsNamed) {
  EditableCheckpoint checkpoint("tiny/llama-untied");
  auto& tensor = checkpoint.tensors["model.layers.0.mlp.up_proj.weight"];
  tensor.type = StorageType::kI16;
  EXPECT_THAT(refusal(checkpoint).message, HasSubstr("model.layers.0.mlp.up_proj.weight is stored as I16"));
  EditableCheckpoint norm("tiny/llama-untied");
  norm.tensors["model.norm.weight"].type = StorageType::kU16;
  EXPECT_THAT(refusal(norm).message,
              HasSubstr("model.norm.weight: expected type F32, F16 or BF16, found U16"));
}

TEST(Loader, FormsOfALayerThatAreNotReadAreRefusedByName) {
  EditableCheckpoint checkpoint("tiny/llama-untied");
  checkpoint.config["quantization_config"] = {{"checkpoint_format", "marlin"}};
  EXPECT_EQ(refusal(checkpoint).code, Code::kUnsupported);
  EXPECT_THAT(refusal(checkpoint).message, HasSubstr("'marlin'"));
  EditableCheckpoint half("tiny/llama-untied");
  half.tensors["model.layers.0.mlp.up_proj.qweight"] = {StorageType::kI32, {1}, std::vector<std::byte>(4)};
  half.tensors.erase("model.layers.0.mlp.up_proj.weight");
  EXPECT_THAT(refusal(half).message, HasSubstr("model.layers.0.mlp.up_proj is stored as qweight"));
}

// Every linear layer but embedding and head as bitsandbytes' int8, or with the values that it then stands
// for.
EditableCheckpoint in_int8(const std::string& name, bool coded) {
  EditableCheckpoint checkpoint(name);
  const EditableCheckpoint plain = checkpoint;
  for (const auto& [tensor, stored] : plain.tensors) {
    const bool linear = stored.shape.size() == 2 && tensor.find(".layers.") != std::string::npos;
    if (!linear) continue;
    const auto in = static_cast<size_t>(stored.shape[1]);
    std::vector<float> values = plain.values(tensor);
    std::vector<float> largest(values.size() / in);
    std::vector<std::byte> codes(values.size());
    for (size_t i = 0; i < values.size(); ++i)
      largest[i / in] = std::max(largest[i / in], std::abs(values[i]));
    for (size_t i = 0; i < values.size(); ++i) {
      const float scale = largest[i / in] / 127.0f;
      const auto code = static_cast<int8_t>(std::lround(values[i] / scale));
      codes[i] = static_cast<std::byte>(code);
      values[i] = static_cast<float>(code) * scale;
    }
    if (!coded) {
      checkpoint.set_values(tensor, stored.shape, values);
      continue;
    }
    checkpoint.tensors[tensor] = {StorageType::kI8, stored.shape, codes};
    const std::string layer = tensor.substr(0, tensor.rfind('.'));
    checkpoint.set_values(layer + ".SCB", {static_cast<int64_t>(largest.size())}, largest);
  }
  return checkpoint;
}

TEST(Loader, AQuantisedCheckpointComputesWhatItsCodesStandFor) {
  for (const char* name : {"tiny/internlm2", "tiny/qwen2-14heads", "tiny/llama-tied-9heads"}) {
    const std::vector<float> coded = logits_of(in_int8(name, true));
    EXPECT_LT(max_relative_error(coded, logits_of(in_int8(name, false))), 1e-5) << name;
    EXPECT_GT(max_relative_error(coded, logits_of(EditableCheckpoint(name))), 1e-4) << name;
  }
}

TEST(Loader, ABiasThatAQuantisedLayerBringsIsAddedWhateverTheConfigSays) {
  EditableCheckpoint coded = in_int8("tiny/llama-untied", true);
  const std::vector<float> without = logits_of(coded);
  coded.set_values("model.layers.0.mlp.down_proj.bias", {32}, std::vector<float>(32, 0.5f));
  EXPECT_GT(max_relative_error(logits_of(coded), without), 1e-3);
}

TEST(Loader, WithoutAHeadTheEmbeddingIsTheHead) {
  EditableCheckpoint untied("tiny/llama-untied");
  EditableCheckpoint tied = untied;
  untied.tensors["lm_head.weight"] = untied.tensors["model.embed_tokens.weight"];
  tied.tensors.erase("lm_head.weight");  // although the config still says tie_word_embeddings: false
  const Result<GoldenModel> loaded = load(tied);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_TRUE(loaded->model.spec.tied_embedding);
  EXPECT_EQ(loaded->model.weights.head.out, 0);
  EXPECT_EQ(logits_of(*loaded), logits_of(untied));
}

TEST(Loader, ATiedCheckpointThatStoresAHeadAllTheSameIgnoresIt) {
  EditableCheckpoint checkpoint("tiny/qwen2-bf16");
  const std::vector<float> expected = logits_of(checkpoint);
  checkpoint.set_values("lm_head.weight", {64, 32}, std::vector<float>(64 * 32, 1));
  EXPECT_EQ(logits_of(checkpoint), expected);
}

TEST(Loader, TensorsThatNothingUsesAreOnlyLogged) {
  EditableCheckpoint checkpoint("tiny/llama-untied");
  const std::vector<float> expected = logits_of(checkpoint);
  checkpoint.set_values("model.layers.0.self_attn.rotary_emb.inv_freq", {4}, {1, 2, 3, 4});
  init_log({.level = LogLevel::kDebug});
  testing::internal::CaptureStderr();
  EXPECT_EQ(logits_of(checkpoint), expected);
  const std::string logged = testing::internal::GetCapturedStderr();
  init_log({});
  EXPECT_THAT(logged, HasSubstr("model.layers.0.self_attn.rotary_emb.inv_freq is not used"));
  EXPECT_THAT(logged, testing::Not(HasSubstr("q_proj")));
}

// The same numbers in another order: what loads without a complaint and then talks garbage.
TEST(Loader, InternLm2PacksByGroupAndAPlainConcatenationIsGarbage) {
  const EditableCheckpoint packed("tiny/internlm2");
  const std::vector<float> llama = logits_of(EditableCheckpoint("tiny/llama-untied"));
  EXPECT_LE(max_relative_error(logits_of(packed), llama), 1e-6);
  EditableCheckpoint concatenated = packed;
  const EditableCheckpoint source("tiny/llama-untied");
  for (int layer = 0; layer < 2; ++layer) {
    std::vector<float> rows;
    for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
      const auto values = source.values(fmt::format("model.layers.{}.self_attn.{}.weight", layer, part));
      rows.insert(rows.end(), values.begin(), values.end());
    }
    concatenated.set_values(fmt::format("model.layers.{}.attention.wqkv.weight", layer), {64, 32}, rows);
  }
  EXPECT_GT(max_relative_error(logits_of(concatenated), llama), 0.1);
}

TEST(Loader, BiasesOfPackedRowsMoveWithThem) {
  EditableCheckpoint llama("tiny/llama-untied");
  EditableCheckpoint packed("tiny/internlm2");
  llama.config["attention_bias"] = true;
  packed.config["bias"] = true;
  const auto ramp = [](size_t size, float start) {
    std::vector<float> values(size);
    std::iota(values.begin(), values.end(), start);
    for (float& value : values) value = std::sin(value);
    return values;
  };
  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    const std::vector<float> q = ramp(32, 1);
    const std::vector<float> k = ramp(16, 50);
    const std::vector<float> v = ramp(16, 90);
    llama.set_values(prefix + "self_attn.q_proj.bias", {32}, q);
    llama.set_values(prefix + "self_attn.k_proj.bias", {16}, k);
    llama.set_values(prefix + "self_attn.v_proj.bias", {16}, v);
    llama.set_values(prefix + "self_attn.o_proj.bias", {32}, ramp(32, 7));
    std::vector<float> groups;  // two of them: 16 of q, 8 of k, 8 of v
    for (int g = 0; g < 2; ++g) {
      groups.insert(groups.end(), q.begin() + 16 * g, q.begin() + 16 * (g + 1));
      groups.insert(groups.end(), k.begin() + 8 * g, k.begin() + 8 * (g + 1));
      groups.insert(groups.end(), v.begin() + 8 * g, v.begin() + 8 * (g + 1));
    }
    packed.set_values(prefix + "attention.wqkv.bias", {64}, groups);
    packed.set_values(prefix + "attention.wo.bias", {32}, ramp(32, 7));
  }
  EXPECT_LE(max_relative_error(logits_of(packed), logits_of(llama)), 1e-6);
  EXPECT_GT(max_relative_error(logits_of(packed), logits_of(EditableCheckpoint("tiny/llama-untied"))), 0.01);
}

TEST(Loader, PartsThatReadTheSameInputAreFusedWhereTheirFormatsAgree) {
  const auto dense = load_for_test(test_data("tiny/llama-untied"), ComputeType::kAuto);
  ASSERT_TRUE(dense.ok()) << dense.error().message;
  EXPECT_EQ(dense->model.weights.layers[0].qkv.parts.size(), 1u);
  EXPECT_EQ(dense->model.weights.layers[0].gate_up.parts.size(), 1u);
  // q and k are Q4_0, v is Q8_0.
  const auto mixed = load_for_test(test_data("gguf/llama"), ComputeType::kAuto);
  ASSERT_TRUE(mixed.ok()) << mixed.error().message;
  const Projection& qkv = mixed->model.weights.layers[0].qkv;
  ASSERT_EQ(qkv.parts.size(), 2u);
  EXPECT_EQ(qkv.parts[0].out, 48);
  EXPECT_EQ(qkv.parts[0].kind, LinearKind::kInt4);
  EXPECT_EQ(qkv.parts[1].out, 16);
  EXPECT_EQ(qkv.parts[1].kind, LinearKind::kInt8);
  EXPECT_EQ(qkv.out(), 64);
}

TEST(Loader, WeightsCountTheirBytes) {
  const auto loaded = load_for_test(test_data("tiny/llama-untied"), ComputeType::kF32);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Weights& weights = loaded->model.weights;
  const auto parameters = static_cast<size_t>(loaded->model.spec.num_parameters());
  const size_t embedding = size_t{64} * 32;
  EXPECT_EQ(weights.bytes_per_step(), (parameters - embedding) * 4);  // one row of it is read, not the table
  EXPECT_GE(weights.bytes(), parameters * 4);
}

TEST(Loader, TheSpecIsReadWithoutWeights) {
  EditableCheckpoint checkpoint("tiny/llama-untied");
  checkpoint.tensors.clear();
  const TempFolder folder;
  checkpoint.write(folder);
  const auto opened = open_checkpoint(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const auto spec = read_spec(*opened);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->hidden_size, 32);
  const auto gguf = open_checkpoint(test_data("gguf/llama"));
  ASSERT_TRUE(gguf.ok());
  EXPECT_EQ(read_spec(*gguf)->rope.scaling, RopeScaling::kFactors);
  EXPECT_EQ(read_spec(*gguf)->rope.factors.size(), 4u);
}

TEST(Loader, AModelOfAnotherSizeThanItsTensorsClaimsNoMemory) {
  // The config asks for the largest model that is allowed; the tensors are tiny.
  EditableCheckpoint checkpoint("tiny/llama-untied");
  checkpoint.config["num_hidden_layers"] = 1024;
  checkpoint.config["max_position_embeddings"] = 1 << 24;
  EXPECT_THAT(refusal(checkpoint).message, HasSubstr("model.layers.2."));
  checkpoint.config["hidden_size"] = 1 << 16;
  checkpoint.config["vocab_size"] = 1 << 22;
  EXPECT_THAT(refusal(checkpoint).message, HasSubstr("expected shape [4194304, 65536]"));
}

}  // namespace
}  // namespace whippet
