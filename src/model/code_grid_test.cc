#include "model/code_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backend/packing.h"

namespace whippet {
namespace {

CanonicalLinear dense_of(const std::vector<float>& values, int32_t out, int32_t in) {
  CanonicalLinear weight;
  weight.out = out;
  weight.in = in;
  weight.codes = std::as_bytes(std::span(values));
  return weight;
}

std::vector<float> normal_values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.01f, 0.05f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

double mean_square_error(const CanonicalLinear& coded, const std::vector<float>& values) {
  double sum = 0;
  for (int32_t o = 0; o < coded.out; ++o) {
    for (int32_t i = 0; i < coded.in; ++i) {
      const double error = weight_value(coded, o, i) - values[static_cast<size_t>(o) * coded.in + i];
      sum += error * error;
    }
  }
  return sum / static_cast<double>(values.size());
}

TEST(CodeGrid, NoValueIsFurtherThanHalfAStepUnlessItWasCut) {
  const std::vector<float> values = normal_values(13 * 200, 1);
  const CanonicalLinear dense = dense_of(values, 13, 200);
  for (const CodeGrid grid : {CodeGrid{8, 0, true}, CodeGrid{8, 64, false}, CodeGrid{8, 128, true}}) {
    const Result<CanonicalLinear> coded = round_to_nearest(dense, grid);
    ASSERT_TRUE(coded.ok());
    for (int32_t o = 0; o < 13; ++o) {
      for (int32_t i = 0; i < 200; ++i) {
        const float scale = coded->scale[static_cast<size_t>(o) * coded->num_groups() + i / coded->group];
        // The largest value of a group may fall half a step beyond the last code.
        EXPECT_LE(std::abs(weight_value(*coded, o, i) - values[static_cast<size_t>(o) * 200 + i]),
                  0.51f * scale);
      }
    }
  }
}

TEST(CodeGrid, FourBitsLoseAsMuchAsTheirStepSays) {
  const std::vector<float> values = normal_values(size_t{64} * 256, 2);
  const CanonicalLinear dense = dense_of(values, 64, 256);
  // Normal values in 16 even steps lose at least 0.0115 of their variance (Max 1960: 20.2 dB less 1 dB for an
  // even grid); groups of 64 with a scale of their own come near that.
  for (const bool symmetric : {true, false}) {
    const Result<CanonicalLinear> coded = round_to_nearest(dense, {4, 64, symmetric});
    ASSERT_TRUE(coded.ok());
    EXPECT_EQ(coded->codes_type, CanonicalLinear::Codes::kU4);
    EXPECT_EQ(coded->min.size(), size_t{64} * 4);
    const double loss = mean_square_error(*coded, values) / (0.05 * 0.05);
    EXPECT_GT(loss, 0.005);
    EXPECT_LT(loss, 0.016);
  }
}

TEST(CodeGrid, NarrowingTheRangeLosesLessThanTheWholeOne) {
  std::vector<float> values = normal_values(64, 3);
  values[5] = 0.4f;  // an outlier
  const CodeGrid grid{4, 64, true};
  const GroupFit fit = fit_group(values, grid);
  EXPECT_LT(fit.scale, 2 * 0.4f / 15);
  const auto loss = [&](const GroupFit& with) {
    double sum = 0;
    for (const float value : values) {
      const float back = with.scale * static_cast<float>(nearest_code(value, with, 4) - with.zero);
      sum += (back - value) * (back - value);
    }
    return sum;
  };
  EXPECT_LT(loss(fit), loss({2 * 0.4f / 15, 8}));
}

TEST(CodeGrid, ZerosStayZerosExactly) {
  std::vector<float> values(96, 0.0f);
  values[70] = 3;
  for (const bool symmetric : {true, false}) {
    const Result<CanonicalLinear> coded = round_to_nearest(dense_of(values, 1, 96), {4, 64, symmetric});
    ASSERT_TRUE(coded.ok());
    for (int32_t i = 0; i < 96; ++i)
      EXPECT_NEAR(weight_value(*coded, 0, i), values[static_cast<size_t>(i)], i == 70 ? 0.21f : 0.0f) << i;
  }
}

TEST(CodeGrid, TinyAndHugeValuesDoNotOverflow) {
  const std::vector<float> values = {1e-38f, -1e-38f, 0, 0, 3e38f, -3e38f, 1, 0};
  for (const int32_t bits : {4, 8}) {
    const Result<CanonicalLinear> coded = round_to_nearest(dense_of(values, 1, 8), {bits, 4, true});
    ASSERT_TRUE(coded.ok());
    for (int32_t i = 0; i < 4; ++i) EXPECT_EQ(weight_value(*coded, 0, i), 0);
  }
}

TEST(CodeGrid, AValueThatIsNoNumberIsNamed) {
  std::vector<float> values(8, 1.0f);
  values[6] = std::numeric_limits<float>::quiet_NaN();
  const Result<CanonicalLinear> coded = round_to_nearest(dense_of(values, 2, 4), {8, 0, true});
  ASSERT_FALSE(coded.ok());
  EXPECT_EQ(coded.error().code, Code::kCorrupt);
  EXPECT_THAT(coded.error().message, testing::HasSubstr("[1, 2] is nan"));
}

TEST(CodeGrid, TheBiasStays) {
  const std::vector<float> values(8, 1.0f);
  CanonicalLinear dense = dense_of(values, 2, 4);
  dense.bias = {3, 4};
  EXPECT_EQ(round_to_nearest(dense, {8, 0, true})->bias, dense.bias);
}

}  // namespace
}  // namespace whippet
