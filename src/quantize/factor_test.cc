#include "quantize/factor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace whippet {
namespace {

// X^T X of `rows` random inputs whose sizes differ and which go together in part.
std::vector<float> random_moments(int32_t size, int32_t rows, uint32_t seed) {
  const auto n = static_cast<size_t>(size);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x(n), moments(n * n);
  for (int32_t r = 0; r < rows; ++r) {
    const float common = normal(random);
    for (size_t i = 0; i < n; ++i)
      x[i] = (normal(random) + common) * (0.1f + static_cast<float>(i * 7 % n) / static_cast<float>(n));
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) moments[i * n + j] += x[i] * x[j];
  }
  return moments;
}

// The largest element of U^T U (H + damping) - 1.
double distance_from_inverse(const InverseFactor& factor, std::vector<float> h, float damping) {
  const auto n = static_cast<size_t>(factor.size);
  double mean = 0;
  for (size_t i = 0; i < n; ++i) mean += h[i * (n + 1)] / static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) h[i * (n + 1)] += static_cast<float>(damping * mean);
  double largest = 0;
  for (size_t i = 0; i < n; ++i) {
    std::vector<double> row(n);  // of U^T U
    for (size_t k = 0; k <= i; ++k)
      for (size_t j = k; j < n; ++j) row[j] += double{factor.upper[k * n + i]} * factor.upper[k * n + j];
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t k = 0; k < n; ++k)
        sum += row[k] * h[static_cast<size_t>(factor.order[k]) * n + static_cast<size_t>(factor.order[j])];
      largest = std::max(largest, std::abs(sum - (i == j ? 1 : 0)));
    }
  }
  return largest;
}

TEST(Factor, ItsSquareIsTheInverseOfTheDampedMoments) {
  for (const int32_t size : {1, 3, 4, 33, 70}) {
    for (const bool act_order : {false, true}) {
      const std::vector<float> moments = random_moments(size, 200, static_cast<uint32_t>(size));
      const auto factor = factorise(moments, size, {.act_order = act_order, .num_threads = 2});
      ASSERT_TRUE(factor.ok()) << factor.error().message;
      EXPECT_LT(distance_from_inverse(*factor, moments, 0.01f), 1e-4) << size;
    }
  }
}

TEST(Factor, ActOrderBeginsWithTheInputThatMattersMost) {
  const std::vector<float> moments = {1, 0, 0, 0, 9, 0, 0, 0, 4};
  EXPECT_EQ(factorise(moments, 3, {.act_order = true})->order, (std::vector<int32_t>{1, 2, 0}));
  EXPECT_EQ(factorise(moments, 3, {})->order, (std::vector<int32_t>{0, 1, 2}));
}

TEST(Factor, AnInputThatIsAlwaysZeroStandsAlone) {
  std::vector<float> moments = random_moments(8, 50, 1);
  for (size_t i = 0; i < 8; ++i) moments[i * 8 + 5] = moments[5 * 8 + i] = 0;
  const auto factor = factorise(moments, 8, {.damping = 0});
  ASSERT_TRUE(factor.ok());
  for (size_t i = 0; i < 8; ++i) {
    if (i == 5) continue;
    EXPECT_EQ(factor->upper[i * 8 + 5] + factor->upper[5 * 8 + i], 0);
  }
  EXPECT_GT(factor->upper[5 * 8 + 5], 0);
  EXPECT_TRUE(factorise(std::vector<float>(16), 4, {}).ok());  // all of them
}

TEST(Factor, DampingGrowsUntilThereIsAnInverse) {
  const std::vector<float> moments = {1, 2, 2, 1};  // eigenvalues 3 and -1
  const auto factor = factorise(moments, 2, {});
  ASSERT_TRUE(factor.ok());
  EXPECT_TRUE(std::isfinite(factor->upper[0]) && std::isfinite(factor->upper[3]));
}

TEST(Factor, InputsThatAreNotFiniteAreRefused) {
  std::vector<float> moments = {1, 0, 0, 1};
  moments[3] = std::numeric_limits<float>::infinity();
  const auto factor = factorise(moments, 2, {});
  ASSERT_FALSE(factor.ok());
  EXPECT_NE(factor.error().message.find("not finite"), std::string::npos);
}

}  // namespace
}  // namespace whippet
