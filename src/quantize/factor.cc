#include "quantize/factor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "quantize/tasks.h"

namespace whippet {
namespace {

constexpr size_t kRows = 4;      // that one pass over the matrix serves
constexpr size_t kLanes = 8;     // independent sums, for the compiler to vectorise
constexpr size_t kColumns = 32;  // of one task of the inversion
constexpr double kMostDamping = 10;

// sums[r] = sum over k < count of rows[r * stride + k] * other[k].
void dot_rows(const double* rows, size_t stride, const double* other, size_t count, double* sums) {
  double lanes[kRows][kLanes] = {};
  size_t k = 0;
  for (; k + kLanes <= count; k += kLanes) {
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t l = 0; l < kLanes; ++l) lanes[r][l] += rows[r * stride + k + l] * other[k + l];
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    double sum = 0;
    for (const double lane : lanes[r]) sum += lane;
    for (size_t rest = k; rest < count; ++rest) sum += rows[r * stride + rest] * other[rest];
    sums[r] = sum;
  }
}

// L with a = L L^T in the lower triangle, in place. False where `a` is not positive definite.
bool cholesky(std::vector<double>& a, size_t n) {
  const auto at = [&](size_t i, size_t j) -> double& { return a[i * n + j]; };
  for (size_t top = 0; top < n; top += kRows) {
    const size_t end = std::min(n, top + kRows);
    if (end - top == kRows) {
      for (size_t j = 0; j < top; ++j) {
        double sums[kRows];
        dot_rows(&at(top, 0), n, &at(j, 0), j, sums);
        for (size_t r = 0; r < kRows; ++r) at(top + r, j) = (at(top + r, j) - sums[r]) / at(j, j);
      }
    }
    for (size_t i = top; i < end; ++i) {
      for (size_t j = end - top == kRows ? top : 0; j <= i; ++j) {
        double sum = at(i, j);
        for (size_t k = 0; k < j; ++k) sum -= at(i, k) * at(j, k);
        if (j < i) {
          at(i, j) = sum / at(j, j);
          continue;
        }
        if (!(sum > 0)) return false;
        at(i, i) = std::sqrt(sum);
      }
    }
  }
  return true;
}

// Columns [begin, end) of L^-1, by forward substitution.
void invert_columns(const std::vector<double>& lower, size_t n, size_t begin, size_t end,
                    std::vector<double>& inverse) {
  const size_t width = end - begin;
  for (size_t top = begin; top < n; top += kRows) {
    const size_t rows = std::min(kRows, n - top);
    double sums[kRows][kColumns] = {};
    for (size_t k = begin; k < top; ++k) {
      const double* solved = &inverse[k * n + begin];
      for (size_t r = 0; r < rows; ++r) {
        const double factor = lower[(top + r) * n + k];
        for (size_t c = 0; c < width; ++c) sums[r][c] += factor * solved[c];
      }
    }
    for (size_t r = 0; r < rows; ++r) {
      const size_t i = top + r;
      for (size_t k = top; k < i; ++k) {
        for (size_t c = 0; c < width; ++c) sums[r][c] += lower[i * n + k] * inverse[k * n + begin + c];
      }
      for (size_t c = 0; c < width; ++c) {
        const double unit = i == begin + c ? 1 : 0;
        inverse[i * n + begin + c] = (unit - sums[r][c]) / lower[i * n + i];
      }
    }
  }
}

std::vector<int32_t> order_of(std::span<const float> moments, size_t n, bool act_order) {
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  const auto diagonal = [&](int32_t i) { return moments[static_cast<size_t>(i) * (n + 1)]; };
  if (act_order)
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return diagonal(a) > diagonal(b); });
  return order;
}

}  // namespace

// With the order of rows and columns reversed, H = L L^T. Then H^-1 = L^-T L^-1, and reversing L^-1 back
// gives U: one factorisation and one inversion of a triangle.
Result<InverseFactor> factorise(std::span<const float> moments, int32_t size, const FactorOptions& options) {
  const auto n = static_cast<size_t>(size);
  WH_CHECK_EQ(moments.size(), n * n);
  double mean = 0;
  for (const float value : moments)
    if (!std::isfinite(value))
      return make_error(Code::kInvalidArgument, "the calibration gives it inputs that are not finite");
  for (size_t i = 0; i < n; ++i) mean += moments[i * (n + 1)] / static_cast<double>(n);

  InverseFactor factor{size, {}, order_of(moments, n, options.act_order)};
  std::vector<double> lower(n * n);
  const auto fill = [&](double damping) {
    for (size_t i = 0; i < n; ++i) {
      const auto row = static_cast<size_t>(factor.order[n - 1 - i]);
      for (size_t j = 0; j <= i; ++j)
        lower[i * n + j] = moments[row * n + static_cast<size_t>(factor.order[n - 1 - j])];
      const bool dead = moments[row * (n + 1)] == 0;
      lower[i * (n + 1)] += dead ? std::max(mean, 1.0) : damping * mean;
    }
  };
  double damping = options.damping;
  for (fill(damping); !cholesky(lower, n); fill(damping)) {
    damping = std::max(damping, 1e-3) * 10;
    if (damping > kMostDamping)
      return make_error(Code::kInvalidArgument, "the calibration's inputs cannot be told apart");
  }
  std::vector<double> inverse(n * n);
  run_tasks(static_cast<int32_t>((n + kColumns - 1) / kColumns), options.num_threads, [&](int32_t task) {
    const size_t begin = static_cast<size_t>(task) * kColumns;
    invert_columns(lower, n, begin, std::min(n, begin + kColumns), inverse);
  });
  factor.upper.resize(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j)
      factor.upper[i * n + j] = static_cast<float>(inverse[(n - 1 - i) * n + n - 1 - j]);
  }
  return factor;
}

}  // namespace whippet
