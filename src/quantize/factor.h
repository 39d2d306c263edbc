// The matrix that GPTQ walks along: the Cholesky factor of the inverse of the inputs' second moments. Plain
// blocked loops in fp64. Used by GPTQ.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"

namespace whippet {

struct InverseFactor {
  int32_t size = 0;
  std::vector<float> upper;    // [size, size] U with (P (H + damping) P^T)^-1 = U^T U, upper triangular
  std::vector<int32_t> order;  // [size] which input stands at each place of U: P's permutation
};

struct FactorOptions {
  double damping = 0.01;   // of the mean of H's diagonal, added to it; more where that is too little
  bool act_order = false;  // inputs by falling diagonal, instead of as they come
  int32_t num_threads = 1;
};

// moments [size, size]: H = sum of x x^T, symmetric. Inputs that were always 0 are independent of the others.
// kInvalidArgument where H is not finite.
Result<InverseFactor> factorise(std::span<const float> moments, int32_t size, const FactorOptions& options);

}  // namespace whippet
