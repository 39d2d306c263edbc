// Arithmetic on sixteen floats.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

WH_SIMD Vec fma(Vec a, Vec b, Vec c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
WH_SIMD Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
WH_SIMD Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
WH_SIMD Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
WH_SIMD Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
WH_SIMD Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
WH_SIMD Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
WH_SIMD Vec round(Vec a) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.lo, kMode), _mm256_round_ps(a.hi, kMode)};
}
WH_SIMD __m256 power_of_two(__m256 n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
WH_SIMD Vec scale_by_power(Vec a, Vec n) { return a * Vec{power_of_two(n.lo), power_of_two(n.hi)}; }
WH_SIMD Vec select_below(Vec x, float limit, Vec low, Vec high) {
  const __m256 l = _mm256_set1_ps(limit);
  return {_mm256_blendv_ps(high.lo, low.lo, _mm256_cmp_ps(x.lo, l, _CMP_LT_OQ)),
          _mm256_blendv_ps(high.hi, low.hi, _mm256_cmp_ps(x.hi, l, _CMP_LT_OQ))};
}
WH_SIMD Vec absolute(Vec a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
WH_SIMD uint32_t at_least(Vec a, Vec b) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_GE_OQ))) |
         static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_GE_OQ))) << 8;
}
WH_SIMD uint32_t greater(Vec a, Vec b) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ))) |
         static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ))) << 8;
}

WH_SIMD float sum(Vec a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
WH_SIMD float largest(Vec a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

WH_SIMD void transpose_eight(__m256 (&rows)[8]) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}
WH_SIMD void transpose(Vec (&rows)[16]) {
  __m256 quarter[4][8];
  for (int i = 0; i < 8; ++i) {
    quarter[0][i] = rows[i].lo;
    quarter[1][i] = rows[i].hi;
    quarter[2][i] = rows[i + 8].lo;
    quarter[3][i] = rows[i + 8].hi;
  }
  for (auto& each : quarter) transpose_eight(each);
  for (int i = 0; i < 8; ++i) {
    rows[i] = {quarter[0][i], quarter[2][i]};
    rows[i + 8] = {quarter[1][i], quarter[3][i]};
  }
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
