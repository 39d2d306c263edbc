// Arithmetic on sixteen floats.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

WH_SIMD Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
WH_SIMD Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
WH_SIMD Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
WH_SIMD Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
WH_SIMD Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
// b where either is NaN.
WH_SIMD Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
WH_SIMD Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
WH_SIMD Vec round(Vec a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
// a * 2^n for integers -126 <= n <= 127.
WH_SIMD Vec scale_by_power(Vec a, Vec n) { return {_mm512_scalef_ps(a.v, n.v)}; }
// Where x < limit: low, elsewhere (NaN included): high.
WH_SIMD Vec select_below(Vec x, float limit, Vec low, Vec high) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, _mm512_set1_ps(limit), _CMP_LT_OQ), high.v, low.v)};
}
WH_SIMD Vec absolute(Vec a) { return {_mm512_abs_ps(a.v)}; }
// Bit i: a[i] >= b[i]; false for NaN.
WH_SIMD uint32_t at_least(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ); }
WH_SIMD uint32_t greater(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ); }

// The upper eight added to the lower, and so on by halves.
WH_SIMD float sum(Vec a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
WH_SIMD float largest(Vec a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// rows[i][j] and rows[j][i] change places.
WH_SIMD void transpose(Vec (&rows)[16]) {
  __m512 a[16], b[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_ps(rows[i].v, rows[i + 1].v);
    a[i + 1] = _mm512_unpackhi_ps(rows[i].v, rows[i + 1].v);
  }
  for (int i = 0; i < 16; i += 4) {
    b[i] = _mm512_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm512_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    const __m512 low0 = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88);
    const __m512 low1 = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
    const __m512 high0 = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xdd);
    const __m512 high1 = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xdd);
    rows[i].v = _mm512_shuffle_f32x4(low0, low1, 0x88);
    rows[i + 8].v = _mm512_shuffle_f32x4(low0, low1, 0xdd);
    rows[i + 4].v = _mm512_shuffle_f32x4(high0, high1, 0x88);
    rows[i + 12].v = _mm512_shuffle_f32x4(high0, high1, 0xdd);
  }
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
