#include "api/quality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace whippet {
namespace {

TEST(Quality, EvenOddsHaveThePerplexityOfTheVocabulary) {
  Quality quality;
  const std::vector<float> even(32, 1.5f);
  for (int32_t target = 0; target < 32; ++target) add_position(quality, even, target, even);
  EXPECT_EQ(quality.tokens, 32);
  EXPECT_NEAR(quality.perplexity(), 32, 1e-9);
  EXPECT_NEAR(quality.reference_perplexity(), 32, 1e-9);
  EXPECT_NEAR(quality.mean_divergence(), 0, 1e-12);
  EXPECT_EQ(quality.agreement(), 1);
}

TEST(Quality, DivergenceIsTheSumOverTheReference) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> model(50), reference(50);
  for (float& logit : model) logit = normal(random);
  for (float& logit : reference) logit = normal(random) + 700;  // a constant changes nothing, nor overflows
  Quality quality;
  add_position(quality, model, 7, reference);
  double p_sum = 0, q_sum = 0, divergence = 0;
  for (size_t i = 0; i < 50; ++i)
    p_sum += std::exp(reference[i] - 700.0), q_sum += std::exp(double{model[i]});
  for (size_t i = 0; i < 50; ++i) {
    const double p = std::exp(reference[i] - 700.0) / p_sum, q = std::exp(double{model[i]}) / q_sum;
    divergence += p * std::log(p / q);
  }
  EXPECT_NEAR(quality.divergence, divergence, 1e-4);
  EXPECT_NEAR(quality.loss, -std::log(std::exp(double{model[7]}) / q_sum), 1e-6);
  EXPECT_GT(divergence, 0.5);
}

TEST(Quality, NoPositionsAreNoDivisionByZero) {
  const Quality quality;
  EXPECT_EQ(quality.perplexity(), 0);
  EXPECT_EQ(quality.mean_divergence(), 0);
  EXPECT_EQ(quality.agreement(), 0);
}

}  // namespace
}  // namespace whippet
