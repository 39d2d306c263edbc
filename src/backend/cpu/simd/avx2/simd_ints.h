// Vectors of integers on AVX2: what products of 8-bit integers have in common with and without VNNI.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

struct Ints {  // one for each output
  __m256i lo, hi;
};
struct Bytes {  // [16 outputs][4 columns], unsigned
  __m256i lo, hi;
};

WH_SIMD Ints ints(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
WH_SIMD Vec to_float(Ints a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
WH_SIMD Bytes load_bytes(const uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
WH_SIMD Bytes low_nibbles(Bytes b) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(b.lo, mask), _mm256_and_si256(b.hi, mask)};
}
WH_SIMD Bytes high_nibbles(Bytes b) {
  return low_nibbles({_mm256_srli_epi16(b.lo, 4), _mm256_srli_epi16(b.hi, 4)});
}
// Integers within a byte's range; n is 8 or 16.
WH_SIMD void store_integers(int8_t* p, Vec a, int n) {
  const __m256i shorts = _mm256_packs_epi32(_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi));
  const __m256i ordered = _mm256_permute4x64_epi64(shorts, 0xd8);
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
  if (n == 16)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  else
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), bytes);
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
