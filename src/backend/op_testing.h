// What the op tests share: seeded inputs, poisoned and guarded outputs, derived tolerances, and the backends
// to test (the CPU for every instruction set of this machine, and CUDA where there is a device). Tests only.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/registry.h"

namespace whippet::testing {

using Random = std::mt19937_64;

// The instruction sets of the CPU backend, and "cuda" where it works.
std::vector<std::string> tested_backends();
// One of them, with fp32 activations in host memory; CUDA with one order of summation for any batch.
std::unique_ptr<Backend> tested_backend(const std::string& name, int32_t threads = 2);

// A matrix in memory of its own: rows are `stride` apart, everything around and between them is a guard
// value. Filled with NaN where it is not given values.
class TestMat {
 public:
  TestMat(int32_t rows, int32_t cols, int32_t gap = 0);
  static TestMat random(Random& random, int32_t rows, int32_t cols, int32_t gap = 0, float scale = 1);

  Mat mat() { return {values_.data() + kGuard, DType::kF32, rows_, cols_, stride_}; }
  const float& at(int32_t r, int32_t c) const {
    return values_[kGuard + static_cast<size_t>(r) * stride_ + c];
  }
  float& at(int32_t r, int32_t c) { return values_[kGuard + static_cast<size_t>(r) * stride_ + c]; }
  int32_t rows() const { return rows_; }
  int32_t cols() const { return cols_; }
  // Whether every guard is as it was.
  bool intact() const;

 private:
  static constexpr int32_t kGuard = 16;
  bool is_guard(size_t index) const;

  int32_t rows_, cols_, stride_;
  std::vector<float> values_;
};

bool same_bits(float a, float b);
void expect_same_bits(const TestMat& a, const TestMat& b, const std::string& what);
// |actual - expected| <= bound(r, c) everywhere; NaN fails.
template <class Bound>
void expect_within(const TestMat& actual, const TestMat& expected, const Bound& bound,
                   const std::string& what) {
  for (int32_t r = 0; r < expected.rows(); ++r) {
    for (int32_t c = 0; c < expected.cols(); ++c) {
      const double difference = std::abs(static_cast<double>(actual.at(r, c)) - expected.at(r, c));
      ASSERT_LE(difference, bound(r, c)) << what << " at [" << r << ", " << c << "]: " << actual.at(r, c)
                                         << ", expected " << expected.at(r, c);
    }
  }
}

// A random weight of the given kind. Quantised: group inputs a scale; with_min adds minima.
struct WeightShape {
  CanonicalLinear::Codes codes = CanonicalLinear::Codes::kF32;
  int32_t out = 0;
  int32_t in = 0;
  int32_t group = 0;
  bool with_min = false;
  bool with_bias = false;
  bool half_factors = false;  // scales and minima are halves, as in most files
  bool symmetric = false;     // with_min: every min is -8 times its scale
  enum class Order { kNone, kPermuted, kUneven } order = Order::kNone;
  std::string name() const;
};
CanonicalLinear random_weight(Random& random, const WeightShape& shape);

}  // namespace whippet::testing
