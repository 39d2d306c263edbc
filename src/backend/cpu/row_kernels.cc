// Norm, rotation, activation, addition and conversion of one row.
#include "backend/cpu/exp.h"
#include "backend/cpu/kernel_functions.h"
#include "simd_convert.h"
#include "simd_math.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

// each(i, n) for pieces of n <= 16 elements from i.
template <class Each>
WH_SIMD void by_sixteen(int32_t n, const Each& each) {
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) each(i, 16);
  if (i < n) each(i, n - i);
}
WH_SIMD Vec load_some(const float* p, int n) { return n == 16 ? load(p) : load_n(p, n); }
WH_SIMD void store_some(float* p, Vec a, int n) {
  if (n == 16)
    store(p, a);
  else
    store_n(p, a, n);
}

}  // namespace

void rms_norm(const float* x, const float* weight, int32_t dim, float eps, float* out) {
  Vec squares = zero();
  by_sixteen(dim, [&](int32_t i, int n) {
    const Vec a = load_some(x + i, n);
    squares = fma(a, a, squares);
  });
  const Vec factor = broadcast(1.0f / __builtin_sqrtf(sum(squares) / static_cast<float>(dim) + eps));
  by_sixteen(dim, [&](int32_t i, int n) {
    store_some(out + i, load_some(x + i, n) * factor * load_some(weight + i, n), n);
  });
}

void rope(float* head, const float* cos_sin, int32_t head_dim) {
  const int32_t half = head_dim / 2;
  by_sixteen(half, [&](int32_t i, int n) {
    const Vec a = load_some(head + i, n), b = load_some(head + half + i, n);
    const Vec c = load_some(cos_sin + i, n), s = load_some(cos_sin + half + i, n);
    store_some(head + i, a * c - b * s, n);
    store_some(head + half + i, fma(a, s, b * c), n);
  });
}

void silu_mul(const float* gate, const float* up, float* out, int32_t count) {
  const Vec one = broadcast(1.0f);
  by_sixteen(count, [&](int32_t i, int n) {
    const Vec g = load_some(gate + i, n);
    store_some(out + i, g / (one + exp(zero() - g)) * load_some(up + i, n), n);
  });
}

void add(const float* y, float* x, int32_t count) {
  by_sixteen(count,
             [&](int32_t i, int n) { store_some(x + i, load_some(x + i, n) + load_some(y + i, n), n); });
}

void to_f16(const float* from, uint16_t* to, int32_t count) {
  by_sixteen(count, [&](int32_t i, int n) { store_f16(to + i, load_some(from + i, n), n); });
}

void to_bf16(const float* from, uint16_t* to, int32_t count) {
  by_sixteen(count, [&](int32_t i, int n) { store_bf16(to + i, load_some(from + i, n), n); });
}

void to_i8(const float* from, int8_t* to, float* scale, int32_t count) {
  constexpr float kSteps = 127;
  Vec most = zero(), nothing = zero();
  by_sixteen(count, [&](int32_t i, int n) {
    const Vec each = load_some(from + i, n);
    most = max(absolute(each), most);
    nothing = fma(each, zero(), nothing);  // NaN where something is not finite
  });
  const float limit = largest(most);
  if (sum(nothing) != 0 || !(limit > 1e-30f)) {
    *scale = sum(nothing) != 0 ? __builtin_nanf("") : 0.0f;
    __builtin_memset(to, 0, static_cast<uint64_t>(count));
    return;
  }
  *scale = limit / kSteps;
  const Vec factor = broadcast(kSteps / limit);
  by_sixteen(count, [&](int32_t i, int n) { store_i8(to + i, round(load_some(from + i, n) * factor), n); });
}

void exp(const float* x, float* out, int32_t count) {
  by_sixteen(count, [&](int32_t i, int n) { store_some(out + i, exp(load_some(x + i, n)), n); });
}

}  // namespace whippet::cpu::WHIPPET_ISA
