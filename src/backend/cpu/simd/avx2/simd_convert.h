// Between floats and the types that weights and caches are kept in.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

struct Halves {
  __m128i lo, hi;
};
WH_SIMD Halves load_half_bits(const uint16_t* p, int n) {
  alignas(32) uint16_t some[16] = {};
  if (n < 16) {
    for (int i = 0; i < n; ++i) some[i] = p[i];
    p = some;
  }
  return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)),
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8))};
}
WH_SIMD void store_half_bits(uint16_t* p, Halves bits, int n) {
  alignas(32) uint16_t some[16];
  uint16_t* to = n < 16 ? some : p;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bits.lo);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 8), bits.hi);
  for (int i = 0; n < 16 && i < n; ++i) p[i] = some[i];
}
WH_SIMD Vec load_f16(const uint16_t* p, int n) {
  const Halves bits = load_half_bits(p, n);
  return {_mm256_cvtph_ps(bits.lo), _mm256_cvtph_ps(bits.hi)};
}
WH_SIMD __m256 widen_bf16(__m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
WH_SIMD Vec load_bf16(const uint16_t* p, int n) {
  const Halves bits = load_half_bits(p, n);
  return {widen_bf16(bits.lo), widen_bf16(bits.hi)};
}
WH_SIMD void store_f16(uint16_t* p, Vec a, int n) {
  store_half_bits(
      p, {_mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT), _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT)},
      n);
}
WH_SIMD __m128i narrow_bf16(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}
WH_SIMD void store_bf16(uint16_t* p, Vec a, int n) {
  store_half_bits(p, {narrow_bf16(a.lo), narrow_bf16(a.hi)}, n);
}
WH_SIMD Vec load_i8(const int8_t* p, int n) {
  alignas(16) int8_t some[16] = {};
  if (n < 16) {
    for (int i = 0; i < n; ++i) some[i] = p[i];
    p = some;
  }
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
WH_SIMD __m128i narrow_i16(__m256 a) {
  const __m256i whole = _mm256_cvtps_epi32(a);
  return _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
}
// Integers from -128 to 127.
WH_SIMD void store_i8(int8_t* p, Vec a, int n) {
  alignas(16) int8_t some[16];
  int8_t* to = n < 16 ? some : p;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(narrow_i16(a.lo), narrow_i16(a.hi)));
  for (int i = 0; n < 16 && i < n; ++i) p[i] = some[i];
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
