#include "model/family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace whippet {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json base(const std::string& architecture) {
  return {{"architectures", {architecture}},
          {"vocab_size", 100},
          {"hidden_size", 64},
          {"intermediate_size", 128},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 2},
          {"max_position_embeddings", 512},
          {"rms_norm_eps", 1e-5},
          {"hidden_act", "silu"}};
}

Result<ModelSpec> spec_of(const json& config) {
  WH_ASSIGN(const Family* family, find_family(config));
  return family->spec(config);
}

ModelSpec good(const json& config) {
  Result<ModelSpec> spec = spec_of(config);
  EXPECT_TRUE(spec.ok()) << spec.error().message;
  return spec.ok() ? *spec : ModelSpec{};
}

ModelSpec with(const std::string& architecture, const json& changes) {
  json config = base(architecture);
  config.update(changes);
  return good(config);
}

Error refusal(const std::string& architecture, const json& changes) {
  json config = base(architecture);
  config.update(changes);
  const Result<ModelSpec> spec = spec_of(config);
  EXPECT_FALSE(spec.ok()) << changes;
  return spec.ok() ? Error{} : spec.error();
}

TEST(Family, IsFoundByArchitectureThenByModelType) {
  EXPECT_STREQ((*find_family({{"architectures", {"Qwen3ForCausalLM"}}}))->name, "qwen3");
  EXPECT_STREQ((*find_family({{"model_type", "internlm2"}}))->name, "internlm2");
  EXPECT_STREQ((*find_family({{"architectures", json::array()}, {"model_type", "llama"}}))->name, "llama");
}

TEST(Family, UnknownOnesAreRefusedWithWhatWorks) {
  // A reward model is no causal LM, although its model_type is known.
  const auto family = find_family({{"architectures", {"Qwen2ForRewardModel"}}, {"model_type", "qwen2"}});
  ASSERT_FALSE(family.ok());
  EXPECT_EQ(family.error().code, Code::kUnsupported);
  EXPECT_THAT(family.error().message, HasSubstr("Qwen2ForRewardModel"));
  EXPECT_THAT(family.error().message, HasSubstr("InternLM2ForCausalLM"));
  EXPECT_EQ(find_family(json::object()).error().code, Code::kCorrupt);
  EXPECT_FALSE(find_family({{"architectures", 5}, {"model_type", {1}}}).ok());
}

TEST(Family, LlamaReadsSizesWithDefaults) {
  const ModelSpec spec = with("LlamaForCausalLM", {{"rope_theta", 500000.0}, {"torch_dtype", "bfloat16"}});
  EXPECT_EQ(spec.family, "llama");
  EXPECT_EQ(spec.architecture, "LlamaForCausalLM");
  EXPECT_EQ(spec.vocab_size, 100);
  EXPECT_EQ(spec.hidden_size, 64);
  EXPECT_EQ(spec.num_layers, 4);
  EXPECT_EQ(spec.num_q_heads, 8);
  EXPECT_EQ(spec.num_kv_heads, 2);
  EXPECT_EQ(spec.head_dim, 8);
  EXPECT_EQ(spec.intermediate_size, 128);
  EXPECT_EQ(spec.max_position, 512);
  EXPECT_FLOAT_EQ(spec.rms_eps, 1e-5f);
  EXPECT_EQ(spec.rope.theta, 500000);
  EXPECT_EQ(spec.dtype, "bfloat16");
  EXPECT_FALSE(spec.tied_embedding || spec.qkv_bias || spec.o_bias || spec.mlp_bias || spec.qk_norm);
  EXPECT_EQ(spec.window_of_layer, (std::vector<int32_t>{0, 0, 0, 0}));
  EXPECT_EQ(with("LlamaForCausalLM", {{"num_key_value_heads", nullptr}}).num_kv_heads, 8);
  EXPECT_EQ(with("LlamaForCausalLM", {{"head_dim", 32}}).q_size(), 256);
  EXPECT_EQ(with("LlamaForCausalLM", {{"dtype", "float16"}}).dtype, "float16");
}

TEST(Family, LlamaBiasesFollowTheConfig) {
  const ModelSpec spec = with("LlamaForCausalLM", {{"attention_bias", true}, {"mlp_bias", true}});
  EXPECT_TRUE(spec.qkv_bias && spec.o_bias && spec.mlp_bias);
}

TEST(Family, OthersHaveTheirOwnBiases) {
  const ModelSpec qwen2 = with("Qwen2ForCausalLM", json::object());
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.o_bias || qwen2.mlp_bias || qwen2.qk_norm);
  const ModelSpec qwen3 = with("Qwen3ForCausalLM", {{"attention_bias", false}});
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_FALSE(qwen3.qkv_bias);
  const ModelSpec internlm2 = with("InternLM2ForCausalLM", {{"bias", true}});
  EXPECT_TRUE(internlm2.qkv_bias && internlm2.o_bias);
  EXPECT_FALSE(internlm2.mlp_bias);
}

TEST(Family, RopeIsReadInOldAndNewSpelling) {
  const json old_spelling = {{"rope_theta", 1000000},
                             {"rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}}};
  const json newer = {{"rope_theta", 1000000}, {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2}}}};
  const json newest = {{"rope_parameters", {{"rope_type", "dynamic"}, {"factor", 2.0}, {"rope_theta", 1e6}}}};
  for (const json& config : {old_spelling, newer, newest}) {
    const RopeSpec rope = with("InternLM2ForCausalLM", config).rope;
    EXPECT_EQ(rope.theta, 1e6f);
    EXPECT_EQ(rope.scaling, RopeScaling::kDynamicNtk);
    EXPECT_EQ(rope.factor, 2);
    EXPECT_EQ(rope.original_max_position, 512);
  }
  for (const json& config :
       {json{{"rope_scaling", nullptr}}, json{{"rope_parameters", {{"rope_type", "default"}}}},
        json{{"rope_scaling", {{"type", "default"}}}}, json::object()}) {
    EXPECT_EQ(with("Qwen2ForCausalLM", config).rope.scaling, RopeScaling::kNone);
    EXPECT_EQ(with("Qwen2ForCausalLM", config).rope.theta, 10000);
  }
}

TEST(Family, Llama3RopeNeedsItsFactors) {
  const json scaling = {{"rope_type", "llama3"},
                        {"factor", 32.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192}};
  const RopeSpec rope = with("LlamaForCausalLM", {{"rope_scaling", scaling}}).rope;
  EXPECT_EQ(rope.scaling, RopeScaling::kLlama3);
  EXPECT_EQ(rope.factor, 32);
  EXPECT_EQ(rope.high_freq_factor, 4);
  EXPECT_EQ(rope.original_max_position, 8192);
  json wrong = scaling;
  wrong.erase("high_freq_factor");
  EXPECT_THAT(refusal("LlamaForCausalLM", {{"rope_scaling", wrong}}).message, HasSubstr("high_freq_factor"));
  wrong["high_freq_factor"] = 1.0;
  EXPECT_THAT(refusal("LlamaForCausalLM", {{"rope_scaling", wrong}}).message, HasSubstr("must be below"));
}

TEST(Family, RopeOfUnknownTypesIsRefusedByName) {
  const Error yarn = refusal("Qwen2ForCausalLM", {{"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}}}});
  EXPECT_EQ(yarn.code, Code::kUnsupported);
  EXPECT_THAT(yarn.message, HasSubstr("'yarn'"));
  EXPECT_THAT(refusal("LlamaForCausalLM", {{"rope_scaling", 5}}).message, HasSubstr("rope_scaling"));
  EXPECT_THAT(refusal("LlamaForCausalLM", {{"rope_scaling", {{"type", "linear"}}}}).message,
              HasSubstr("factor"));
  EXPECT_THAT(
      refusal("LlamaForCausalLM", {{"rope_parameters", {{"full_attention", json::object()}}}}).message,
      HasSubstr("differs between layers"));
}

using Windows = std::vector<int32_t>;

TEST(Family, QwenWindowsStartAtMaxWindowLayers) {
  const json sliding = {{"use_sliding_window", true}, {"sliding_window", 16}, {"max_window_layers", 1}};
  for (const char* architecture : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    EXPECT_EQ(with(architecture, sliding).window_of_layer, (Windows{0, 16, 16, 16}));
    json off = sliding;
    off["use_sliding_window"] = false;
    EXPECT_EQ(with(architecture, off).window_of_layer, (Windows{0, 0, 0, 0}));
    json beyond = sliding;
    beyond["max_window_layers"] = 28;
    EXPECT_EQ(with(architecture, beyond).window_of_layer, (Windows{0, 0, 0, 0}));
    json none = sliding;
    none["sliding_window"] = nullptr;
    EXPECT_EQ(with(architecture, none).window_of_layer, (Windows{0, 0, 0, 0}));
  }
}

TEST(Family, AnExplicitListOfLayerTypesWins) {
  const json list = {"sliding_attention", "full_attention", "sliding_attention", "full_attention"};
  EXPECT_EQ(with("Qwen2ForCausalLM", {{"layer_types", list},
                                      {"use_sliding_window", true},
                                      {"sliding_window", 16},
                                      {"max_window_layers", 1}})
                .window_of_layer,
            (Windows{16, 0, 16, 0}));
  EXPECT_THAT(refusal("Qwen2ForCausalLM", {{"layer_types", list}}).message, HasSubstr("sliding_window"));
  EXPECT_THAT(refusal("Qwen2ForCausalLM", {{"layer_types", {"full_attention"}}}).message,
              HasSubstr("list of 4"));
  EXPECT_THAT(refusal("Qwen2ForCausalLM", {{"layer_types", {"a", "b", "c", "d"}}}).message,
              HasSubstr("layer_types[0] is 'a'"));
}

TEST(Family, TokenIdsMayBeANumberAListOrNothing) {
  EXPECT_EQ(with("LlamaForCausalLM", {{"eos_token_id", 2}}).eos_ids, (Windows{2}));
  EXPECT_EQ(with("LlamaForCausalLM", {{"eos_token_id", {2, 7, 5000, -1}}}).eos_ids, (Windows{2, 7}));
  EXPECT_TRUE(with("LlamaForCausalLM", {{"eos_token_id", nullptr}}).eos_ids.empty());
  EXPECT_EQ(with("LlamaForCausalLM", {{"bos_token_id", 1}}).bos_id, 1);
  EXPECT_EQ(with("LlamaForCausalLM", json::object()).bos_id, -1);
  EXPECT_THAT(refusal("LlamaForCausalLM", {{"eos_token_id", "</s>"}}).message, HasSubstr("eos_token_id"));
}

TEST(Family, EverySizeIsCheckedAndNamed) {
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "max_position_embeddings", "head_dim"}) {
    for (const json& value : {json(0), json(-4), json(int64_t{1} << 40), json("64"), json(6.5),
                              json(json::array({64})), json(UINT64_MAX), json(true)}) {
      const Error error = refusal("LlamaForCausalLM", {{key, value}});
      EXPECT_THAT(error.message, HasSubstr(key)) << value;
      EXPECT_THAT(error.message, HasSubstr("expected")) << value;
    }
  }
  json config = base("LlamaForCausalLM");
  config.erase("hidden_size");
  EXPECT_THAT(spec_of(config).error().message, HasSubstr("hidden_size: expected a whole number from 1 to"));
  EXPECT_THAT(refusal("LlamaForCausalLM", {{"num_key_value_heads", 3}}).message,
              HasSubstr("num_attention_heads 8 is no multiple of num_key_value_heads 3"));
  EXPECT_THAT(refusal("LlamaForCausalLM", {{"hidden_size", 60}}).message, HasSubstr("head_dim is absent"));
  EXPECT_THAT(refusal("LlamaForCausalLM", {{"head_dim", 7}}).message, HasSubstr("even number"));
  EXPECT_THAT(refusal("LlamaForCausalLM", {{"rms_norm_eps", 0}}).message, HasSubstr("rms_norm_eps"));
  EXPECT_THAT(refusal("LlamaForCausalLM", {{"rope_theta", 0.1}}).message, HasSubstr("rope_theta"));
}

TEST(Family, SwitchesThatChangeTheArithmeticAreRefused) {
  for (const json& change : {json{{"hidden_act", "gelu"}}, json{{"partial_rotary_factor", 0.5}},
                             json{{"rope_interleaved", true}}, json{{"use_mrope", true}}}) {
    const Error error = refusal("Qwen2ForCausalLM", change);
    EXPECT_EQ(error.code, Code::kUnsupported);
    EXPECT_THAT(error.message, HasSubstr(change.begin().key()));
  }
}

TEST(Family, RealConfigsAreRead) {
  const std::filesystem::path folder = WHIPPET_SOURCE_DIR "/../shared/data/configs";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const auto read = [&](const char* name) {
    std::ifstream in(folder / name);
    return good(json::parse(in));
  };
  const ModelSpec qwen = read("Qwen2.5-0.5B-Instruct.config.json");
  EXPECT_EQ(qwen.num_parameters(), 494032768);
  EXPECT_EQ(qwen.eos_ids, (Windows{151645}));
  EXPECT_EQ(qwen.window_of_layer, Windows(24, 0));
  EXPECT_EQ(read("Qwen3-0.6B.config.json").num_parameters(), 596049920);
  const ModelSpec llama = read("Llama-3.2-1B.config.json");
  EXPECT_EQ(llama.num_parameters(), 1235814400);
  EXPECT_EQ(llama.rope.scaling, RopeScaling::kLlama3);
  EXPECT_EQ(read("SmolLM2-135M.base.config.json").num_parameters(), 134515008);
  const ModelSpec internlm2 = read("internlm2-chat-1_8b.config.RECONSTRUCTED.json");
  EXPECT_EQ(internlm2.num_parameters(), 1889110016);
  EXPECT_EQ(internlm2.rope.scaling, RopeScaling::kDynamicNtk);
}

}  // namespace
}  // namespace whippet
