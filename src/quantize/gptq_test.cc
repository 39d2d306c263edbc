// GPTQ against a slow twin: fp64, one output and one input at a time, the inverse of what is left kept as a
// matrix and shrunk at each step.
#include "quantize/gptq.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace whippet {
namespace {

struct Problem {
  int32_t out, in;
  std::vector<float> weight;   // [out, in]
  std::vector<float> moments;  // [in, in]
};

Problem random_problem(int32_t out, int32_t in, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  const auto n = static_cast<size_t>(in);
  Problem problem{out, in, std::vector<float>(static_cast<size_t>(out) * n), std::vector<float>(n * n)};
  for (float& value : problem.weight) value = normal(random);
  std::vector<float> x(n);
  for (int32_t r = 0; r < 3 * in; ++r) {
    float walk = 0;  // neighbours go together
    for (size_t i = 0; i < n; ++i) {
      walk = 0.8f * walk + normal(random);
      x[i] = walk * (0.2f + static_cast<float>(i * 11 % n) / static_cast<float>(n));
    }
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) problem.moments[i * n + j] += x[i] * x[j];
  }
  return problem;
}

// Gauss-Jordan.
std::vector<double> inverse_of(std::vector<double> a, size_t n) {
  std::vector<double> inverse(n * n);
  for (size_t i = 0; i < n; ++i) inverse[i * (n + 1)] = 1;
  for (size_t p = 0; p < n; ++p) {
    const double pivot = a[p * (n + 1)];
    for (size_t j = 0; j < n; ++j) {
      a[p * n + j] /= pivot;
      inverse[p * n + j] /= pivot;
    }
    for (size_t i = 0; i < n; ++i) {
      const double factor = a[i * n + p];
      if (i == p || factor == 0) continue;
      for (size_t j = 0; j < n; ++j) {
        a[i * n + j] -= factor * a[p * n + j];
        inverse[i * n + j] -= factor * inverse[p * n + j];
      }
    }
  }
  return inverse;
}

std::vector<float> twin(const Problem& problem, const std::vector<int32_t>& order, const CodeGrid& grid) {
  const auto n = static_cast<size_t>(problem.in);
  const size_t group = grid.group == 0 ? n : static_cast<size_t>(grid.group);
  const auto input = [&](size_t i) { return static_cast<size_t>(order[i]); };
  double mean = 0;
  for (size_t i = 0; i < n; ++i) mean += problem.moments[i * (n + 1)] / static_cast<double>(n);
  std::vector<double> damped(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) damped[i * n + j] = problem.moments[input(i) * n + input(j)];
    damped[i * (n + 1)] += 0.01 * mean;
  }
  const std::vector<double> whole_inverse = inverse_of(damped, n);
  std::vector<float> result(problem.weight.size());
  for (size_t o = 0; o < static_cast<size_t>(problem.out); ++o) {
    std::vector<double> inverse = whole_inverse;
    std::vector<float> w(n);
    for (size_t i = 0; i < n; ++i) w[i] = problem.weight[o * n + input(i)];
    GroupFit fit;
    for (size_t i = 0; i < n; ++i) {
      if (i % group == 0) fit = storable_fit({w.data() + i, std::min(group, n - i)}, grid);
      const float value = fit.scale * static_cast<float>(nearest_code(w[i], fit, grid.bits) - fit.zero);
      result[o * n + input(i)] = value;
      const double error = (w[i] - value) / inverse[i * (n + 1)];
      for (size_t j = i + 1; j < n; ++j) w[j] = static_cast<float>(w[j] - error * inverse[i * n + j]);
      const double own = inverse[i * (n + 1)];
      std::vector<double> row(&inverse[i * n], &inverse[i * n] + n);
      for (size_t a = i; a < n; ++a)
        for (size_t b = i; b < n; ++b) inverse[a * n + b] -= row[a] * row[b] / own;
      inverse[i * (n + 1)] = own;
    }
  }
  return result;
}

double error_of(const Problem& problem, const std::vector<float>& values) {
  return output_error(problem.weight, values, problem.moments, problem.in, 2);
}

TEST(Gptq, ChoosesTheCodesOfTheSlowTwin) {
  for (const bool act_order : {false, true}) {
    for (const int32_t in : {32, 150, 200}) {  // within a block, and beyond it
      for (const CodeGrid grid : {CodeGrid{.bits = 4, .group = 32}, CodeGrid{.bits = 4, .group = 0},
                                  CodeGrid{.bits = 8, .group = 64, .symmetric = false}}) {
        const Problem problem = random_problem(6, in, static_cast<uint32_t>(in));
        const auto factor = factorise(problem.moments, in, {.act_order = act_order});
        ASSERT_TRUE(factor.ok());
        const std::vector<float> found =
            decode_layer(gptq_layer(problem.weight, problem.out, *factor, grid, 2));
        const std::vector<float> expected = twin(problem, factor->order, grid);
        size_t same = 0;
        for (size_t i = 0; i < found.size(); ++i) same += found[i] == expected[i] ? 1 : 0;
        // A value next to the middle of two codes may fall either way in fp32, and then the rest of its
        // output differs.
        EXPECT_GE(static_cast<double>(same), 0.8 * static_cast<double>(found.size())) << in << act_order;
        EXPECT_NEAR(error_of(problem, found) / error_of(problem, expected), 1, 0.05) << in << act_order;
      }
    }
  }
}

TEST(Gptq, LosesLessThanRoundingToNearest) {
  for (uint32_t seed = 0; seed < 24; ++seed) {
    const bool act_order = seed % 2 == 1;
    const CodeGrid grid{
        .bits = seed % 3 == 2 ? 8 : 4, .group = seed % 4 == 0 ? 0 : 32, .symmetric = seed % 5 != 0};
    const Problem problem = random_problem(9, 64 + static_cast<int32_t>(seed) * 8, seed);
    const auto factor = factorise(problem.moments, problem.in, {.act_order = act_order});
    ASSERT_TRUE(factor.ok());
    const double gptq =
        error_of(problem, decode_layer(gptq_layer(problem.weight, problem.out, *factor, grid, 1)));
    const double rounding =
        error_of(problem, decode_layer(round_layer(problem.weight, problem.out, problem.in, grid, 1)));
    EXPECT_LT(gptq, rounding) << seed;
    EXPECT_GT(gptq, 0) << seed;
  }
}

TEST(Gptq, GroupsFollowTheFactorsOrder) {
  const Problem problem = random_problem(4, 64, 3);
  const auto factor = factorise(problem.moments, 64, {.act_order = true});
  const CodedLayer layer = gptq_layer(problem.weight, 4, *factor, {.bits = 4, .group = 32}, 1);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(layer.g_idx[static_cast<size_t>(factor->order[i])], static_cast<int32_t>(i) / 32);
}

TEST(Gptq, AnInputThatIsAlwaysZeroIsRounded) {
  Problem problem = random_problem(5, 32, 4);
  for (size_t i = 0; i < 32; ++i) problem.moments[i * 32 + 9] = problem.moments[9 * 32 + i] = 0;
  const auto factor = factorise(problem.moments, 32, {});
  const std::vector<float> values =
      decode_layer(gptq_layer(problem.weight, 5, *factor, {.bits = 8, .group = 32}, 1));
  for (size_t o = 0; o < 5; ++o) EXPECT_NEAR(values[o * 32 + 9], problem.weight[o * 32 + 9], 0.05);
}

TEST(OutputError, IsTheSumOfSquaredChangesOfTheOutputs) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {0, 2, 3, 4, 6, 6};  // [2, 3]
  // Inputs (1, 2, 3) and (1, 0, 0): the outputs change by 1, 1 and by -2, 0.
  const std::vector<float> moments = {2, 2, 3, 2, 4, 6, 3, 6, 9};
  EXPECT_DOUBLE_EQ(output_error(a, b, moments, 3, 1), 1 + 1 + 4);
  EXPECT_DOUBLE_EQ(output_error(a, {}, moments, 3, 1), 14 * 14 + 1 + 32 * 32 + 4 * 4);
}

}  // namespace
}  // namespace whippet
