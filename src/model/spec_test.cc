#include "model/spec.h"

#include <gtest/gtest.h>

#include <cmath>

namespace whippet {
namespace {

ModelSpec spec_of(RopeSpec rope, int32_t head_dim = 64) {
  ModelSpec spec;
  spec.head_dim = head_dim;
  spec.rope = std::move(rope);
  return spec;
}

TEST(Rope, PlainFrequenciesFallGeometrically) {
  const auto frequencies = rope_frequencies(spec_of({.theta = 10000}), 1 << 20);
  ASSERT_EQ(frequencies.size(), 32u);
  EXPECT_FLOAT_EQ(frequencies[0], 1);
  EXPECT_FLOAT_EQ(frequencies[16], 0.01f);
  EXPECT_FLOAT_EQ(frequencies[31], static_cast<float>(std::pow(10000.0, -62.0 / 64)));
}

TEST(Rope, LinearScalingDividesAll) {
  const RopeSpec plain{.theta = 500};
  RopeSpec scaled = plain;
  scaled.scaling = RopeScaling::kLinear;
  scaled.factor = 4;
  const auto a = rope_frequencies(spec_of(plain), 10);
  const auto b = rope_frequencies(spec_of(scaled), 10);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_FLOAT_EQ(b[i], a[i] / 4);
}

TEST(Rope, Llama3KeepsHighDividesLowAndBlendsBetween) {
  const RopeSpec rope{.theta = 500000,
                      .scaling = RopeScaling::kLlama3,
                      .factor = 32,
                      .low_freq_factor = 1,
                      .high_freq_factor = 4,
                      .original_max_position = 8192};
  const auto plain = rope_frequencies(spec_of({.theta = 500000}), 1);
  const auto scaled = rope_frequencies(spec_of(rope), 1);
  int blended = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const double wavelength = 2 * M_PI / plain[i];
    if (wavelength < 8192.0 / 4) {
      EXPECT_FLOAT_EQ(scaled[i], plain[i]);
    } else if (wavelength > 8192) {
      EXPECT_FLOAT_EQ(scaled[i], plain[i] / 32);
    } else {
      ++blended;
      EXPECT_LT(scaled[i], plain[i]);
      EXPECT_GT(scaled[i], plain[i] / 32);
    }
  }
  EXPECT_GT(blended, 0);
}

TEST(Rope, DynamicNtkChangesNothingUpToTheTrainedLength) {
  const RopeSpec rope{
      .theta = 1e6f, .scaling = RopeScaling::kDynamicNtk, .factor = 2, .original_max_position = 32768};
  const auto plain = rope_frequencies(spec_of({.theta = 1e6f}, 128), 1);
  EXPECT_EQ(rope_frequencies(spec_of(rope, 128), 1), plain);
  EXPECT_EQ(rope_frequencies(spec_of(rope, 128), 32768), plain);
  const auto beyond = rope_frequencies(spec_of(rope, 128), 65536);
  const double base = 1e6 * std::pow(2.0 * 65536 / 32768 - 1, 128.0 / 126);
  for (size_t i = 0; i < beyond.size(); ++i) {
    EXPECT_FLOAT_EQ(beyond[i], static_cast<float>(std::pow(base, -2.0 * static_cast<double>(i) / 128)));
  }
}

TEST(Rope, GivenFactorsDivide) {
  const auto frequencies =
      rope_frequencies(spec_of({.theta = 100, .scaling = RopeScaling::kFactors, .factors = {1, 8}}, 4), 1);
  EXPECT_FLOAT_EQ(frequencies[0], 1);
  EXPECT_FLOAT_EQ(frequencies[1], 0.1f / 8);
}

TEST(ModelSpec, CountsParametersAndCacheBytes) {
  ModelSpec qwen;  // Qwen2.5-0.5B: 494,032,768 parameters
  qwen.vocab_size = 151936;
  qwen.hidden_size = 896;
  qwen.num_layers = 24;
  qwen.num_q_heads = 14;
  qwen.num_kv_heads = 2;
  qwen.head_dim = 64;
  qwen.intermediate_size = 4864;
  qwen.qkv_bias = true;
  qwen.tied_embedding = true;
  EXPECT_EQ(qwen.num_parameters(), 494032768);
  EXPECT_EQ(qwen.kv_bytes_per_token(DType::kBF16), 24 * 2 * 2 * 64 * 2);
  EXPECT_EQ(qwen.kv_bytes_per_token(DType::kI8), 24 * 2 * 2 * (64 + 4));  // a scale a token and head

  ModelSpec qwen3 = qwen;  // Qwen3-0.6B: 596,049,920
  qwen3.hidden_size = 1024;
  qwen3.num_layers = 28;
  qwen3.num_q_heads = 16;
  qwen3.num_kv_heads = 8;
  qwen3.head_dim = 128;
  qwen3.intermediate_size = 3072;
  qwen3.qkv_bias = false;
  qwen3.qk_norm = true;
  EXPECT_EQ(qwen3.num_parameters(), 596049920);

  ModelSpec internlm2 = qwen3;  // InternLM2-1.8B: 1,889,110,016, untied
  internlm2.vocab_size = 92544;
  internlm2.hidden_size = 2048;
  internlm2.num_layers = 24;
  internlm2.intermediate_size = 8192;
  internlm2.qk_norm = false;
  internlm2.tied_embedding = false;
  EXPECT_EQ(internlm2.num_parameters(), 1889110016);
}

}  // namespace
}  // namespace whippet
