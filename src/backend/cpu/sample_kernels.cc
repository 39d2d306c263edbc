// Scans over one row of logits.
#include "backend/cpu/exp.h"
#include "backend/cpu/kernel_functions.h"
#include "simd_math.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr float kLargest = 3.402823466e38f;

}  // namespace

float clean_max(float* x, int32_t n) {
  const float none = -__builtin_inff();
  const Vec limit = broadcast(kLargest), banned = broadcast(none);
  Vec most = banned;
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Vec size = absolute(load(x + i));
    const Vec clean = select_below(size, -none, load(x + i), banned);  // NaN is not below
    if (at_least(limit, size) != 0xffff) store(x + i, clean);
    most = max(most, clean);
  }
  float result = largest(most);
  for (; i < n; ++i) {
    if (!(__builtin_fabsf(x[i]) <= kLargest)) x[i] = none;
    if (x[i] > result) result = x[i];
  }
  return result;
}

double softmax_weights(const float* x, int32_t n, float largest_x, float inverse_temperature, float* weights,
                       double* block_sums) {
  const Vec shift = broadcast(largest_x), factor = broadcast(inverse_temperature);
  double total = 0;
  for (int32_t begin = 0; begin < n; begin += kExpBlock) {
    const int32_t end = begin + kExpBlock < n ? begin + kExpBlock : n;
    Vec sums = zero();
    int32_t i = begin;
    for (; i + 16 <= end; i += 16) {
      const Vec weight = exp((load(x + i) - shift) * factor);
      store(weights + i, weight);
      sums = sums + weight;
    }
    if (i < end) {
      store_n(weights + i, exp((load_n(x + i, end - i) - shift) * factor), end - i);
      sums = sums + load_n(weights + i, end - i);
    }
    *block_sums = static_cast<double>(sum(sums));
    total += *block_sums++;
  }
  return total;
}

int32_t find_at_least(const float* x, int32_t n, float threshold, int32_t* indices) {
  const Vec limit = broadcast(threshold);
  int32_t count = 0, i = 0;
  for (; i + 16 <= n; i += 16)
    for (uint32_t bits = at_least(load(x + i), limit); bits != 0; bits &= bits - 1)
      indices[count++] = i + __builtin_ctz(bits);
  for (; i < n; ++i)
    if (x[i] >= threshold) indices[count++] = i;
  return count;
}

int32_t count_greater(const float* x, int32_t n, float threshold) {
  const Vec limit = broadcast(threshold);
  int32_t count = 0, i = 0;
  for (; i + 16 <= n; i += 16) count += __builtin_popcount(greater(load(x + i), limit));
  for (; i < n; ++i) count += x[i] > threshold;
  return count;
}

}  // namespace whippet::cpu::WHIPPET_ISA
