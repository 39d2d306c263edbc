// Every kernel on fixed inputs, for compare_kernels: what one instruction set makes of them is compared with
// what another one does. Inputs are of two kinds. On multiples of a power of two that are small enough every
// sum is exact, and a result has to be the same bits whether products are fused into sums or not; on others
// it may differ by the rounding of both.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/kernels.h"

namespace whippet::cpu {

struct Outcome {
  std::string name;
  std::vector<double> values;  // every NaN is the same one
  double absolute = 0;         // bounds of a difference; both 0: the same bits
  double relative = 0;
};

class Outcomes {
 public:
  // A new outcome, which the calls of add fill.
  void begin(std::string name, double absolute, double relative = 0) {
    list_.push_back({std::move(name), {}, absolute, relative});
  }
  template <class T>
  void add(const T* values, int64_t n) {
    for (int64_t i = 0; i < n; ++i) add(static_cast<double>(values[i]));
  }
  void add(double value) { list_.back().values.push_back(std::isnan(value) ? std::nan("") : value); }
  const std::vector<Outcome>& list() const { return list_; }

 private:
  std::vector<Outcome> list_;
};

// A fixed sequence.
class Sequence {
 public:
  // [low, high]
  int32_t integer(int32_t low, int32_t high) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's multiplier for 64 bits
    return low + static_cast<int32_t>((state_ >> 33) % static_cast<uint64_t>(high - low + 1));
  }
  // [-1, 1]; exact: a multiple of 1/4.
  float value(bool exact) {
    return exact ? static_cast<float>(integer(-4, 4)) / 4
                 : static_cast<float>(integer(-65536, 65536)) / 65536;
  }
  std::vector<float> values(int64_t n, bool exact) {
    std::vector<float> made(static_cast<size_t>(n));
    for (float& each : made) each = value(exact);
    return made;
  }

 private:
  uint64_t state_ = 1;
};

// `portable` converts what the inputs are made of.
void run_linear_kernels(const Kernels& kernels, const Kernels& portable, Outcomes& outcomes);
void run_attention_kernels(const Kernels& kernels, const Kernels& portable, Outcomes& outcomes);
void run_row_kernels(const Kernels& kernels, Outcomes& outcomes);  // and those of sampling

}  // namespace whippet::cpu
