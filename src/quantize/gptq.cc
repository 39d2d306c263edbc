#include "quantize/gptq.h"

#include <algorithm>
#include <array>
#include <vector>

#include "quantize/tasks.h"
#include "tensor/dtype.h"

namespace whippet {
namespace {

constexpr size_t kRows = 4;     // outputs that share one pass over U; outputs are independent of each other
constexpr size_t kBlock = 128;  // inputs whose corrections reach the later ones together
constexpr size_t kLanes = 8;    // independent sums, for the compiler to vectorise

// kRows outputs on their way through the inputs.
class RowSolver {
 public:
  RowSolver(const InverseFactor& factor, const CodeGrid& grid)
      : factor_(factor), grid_(grid), size_(static_cast<size_t>(factor.size)), values_(kRows * size_) {}

  // Outputs [begin, begin + rows) of the weight.
  void solve(std::span<const float> weight, size_t begin, size_t rows, CodedLayer& layer) {
    std::fill(values_.begin(), values_.end(), 0.0f);
    for (size_t r = 0; r < rows; ++r) {
      const float* row = &weight[(begin + r) * size_];
      for (size_t i = 0; i < size_; ++i) values_[r * size_ + i] = row[static_cast<size_t>(factor_.order[i])];
    }
    for (size_t block = 0; block < size_; block += kBlock) {
      const size_t end = std::min(size_, block + kBlock);
      for (size_t r = 0; r < rows; ++r) round_block(r, begin + r, block, end, layer);
      carry_on(block, end);
    }
  }

 private:
  void round_block(size_t r, size_t output, size_t begin, size_t end, CodedLayer& layer) {
    float* values = &values_[r * size_];
    const auto group = static_cast<size_t>(layer.group), groups = static_cast<size_t>(layer.groups());
    for (size_t i = begin; i < end; ++i) {
      const size_t at = output * groups + i / group;
      if (i % group == 0) {
        fits_[r] = storable_fit({values + i, std::min(group, size_ - i)}, grid_);
        layer.scale[at] = f32_to_f16(fits_[r].scale);
        layer.zero[at] = static_cast<uint8_t>(fits_[r].zero);
      }
      const int32_t code = nearest_code(values[i], fits_[r], grid_.bits);
      layer.codes[output * size_ + static_cast<size_t>(factor_.order[i])] = static_cast<uint8_t>(code);
      const float* upper = &factor_.upper[i * size_];
      const float error = (values[i] - fits_[r].scale * static_cast<float>(code - fits_[r].zero)) / upper[i];
      errors_[i - begin][r] = error;
      for (size_t j = i + 1; j < end; ++j) values[j] -= error * upper[j];
    }
  }

  // What rounding inputs [begin, end) asks of all inputs from `end` on.
  void carry_on(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float* upper = &factor_.upper[i * size_];
      const std::array<float, kRows> error = errors_[i - begin];
      for (size_t j = end; j < size_; ++j) {
        for (size_t r = 0; r < kRows; ++r) values_[r * size_ + j] -= error[r] * upper[j];
      }
    }
  }

  const InverseFactor& factor_;
  const CodeGrid& grid_;
  size_t size_;
  std::vector<float> values_;  // [kRows, size] in the factor's order
  std::array<GroupFit, kRows> fits_{};
  std::array<std::array<float, kRows>, kBlock> errors_{};
};

// sum over r of d_r H d_r^T for d [kRows, n], by H's upper triangle.
double quadratic_forms(const std::vector<float>& d, std::span<const float> moments, size_t n) {
  double total = 0;
  for (size_t i = 0; i < n; ++i) {
    float lanes[kRows][kLanes] = {};
    const float* row = &moments[i * n];
    size_t j = i + 1;
    for (; j + kLanes <= n; j += kLanes) {
      for (size_t r = 0; r < kRows; ++r) {
        for (size_t l = 0; l < kLanes; ++l) lanes[r][l] += row[j + l] * d[r * n + j + l];
      }
    }
    for (size_t r = 0; r < kRows; ++r) {
      float sum = 0;
      for (const float lane : lanes[r]) sum += lane;
      for (size_t rest = j; rest < n; ++rest) sum += row[rest] * d[r * n + rest];
      const double own = d[r * n + i];
      total += own * (own * row[i] + 2.0 * sum);
    }
  }
  return total;
}

}  // namespace

CodedLayer gptq_layer(std::span<const float> weight, int32_t out, const InverseFactor& factor,
                      const CodeGrid& grid, int32_t num_threads) {
  WH_CHECK_EQ(weight.size(), static_cast<size_t>(out) * static_cast<size_t>(factor.size));
  CodedLayer layer(out, factor.size, grid);
  for (int32_t i = 0; i < factor.size; ++i)
    layer.g_idx[static_cast<size_t>(factor.order[static_cast<size_t>(i)])] = i / layer.group;
  const auto rows = static_cast<size_t>(out);
  run_tasks(static_cast<int32_t>((rows + kRows - 1) / kRows), num_threads, [&](int32_t task) {
    const size_t begin = static_cast<size_t>(task) * kRows;
    RowSolver(factor, grid).solve(weight, begin, std::min(kRows, rows - begin), layer);
  });
  return layer;
}

double output_error(std::span<const float> a, std::span<const float> b, std::span<const float> moments,
                    int32_t in, int32_t num_threads) {
  const auto n = static_cast<size_t>(in);
  WH_CHECK(moments.size() == n * n && a.size() % n == 0 && (b.empty() || b.size() == a.size()));
  const size_t rows = a.size() / n;
  std::vector<double> sums((rows + kRows - 1) / kRows);
  run_tasks(static_cast<int32_t>(sums.size()), num_threads, [&](int32_t task) {
    const size_t begin = static_cast<size_t>(task) * kRows * n;
    const size_t count = std::min(kRows * n, a.size() - begin);
    std::vector<float> difference(kRows * n);
    for (size_t i = 0; i < count; ++i) difference[i] = a[begin + i] - (b.empty() ? 0.0f : b[begin + i]);
    sums[static_cast<size_t>(task)] = quadratic_forms(difference, moments, n);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace whippet
