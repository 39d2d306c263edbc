// Products of 8-bit integers, four columns of sixteen outputs at a time, on AVX2 without VNNI: bytes are
// widened to pairs of shorts, whose products fit an int.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kDotRows = 2, kDotPanels = 1;  // tile of linear_coded
constexpr int dot_panels(int) { return 1; }  // of few rows

struct Ints {  // one for each output
  __m256i lo, hi;
};
struct Bytes {  // [16 outputs][4 columns], unsigned
  __m256i lo, hi;
};
struct Inputs {  // the same four columns for every output
  __m256i even, odd;
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
WH_SIMD Inputs inputs(const int8_t* q) {
  int32_t four;
  __builtin_memcpy(&four, q, sizeof(four));
  const __m256i all = _mm256_set1_epi32(four);
  return {_mm256_srai_epi16(_mm256_slli_epi16(all, 8), 8), _mm256_srai_epi16(all, 8)};
}
WH_SIMD __m256i dot_of_eight(__m256i w, Inputs x, __m256i sum) {
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(w, _mm256_set1_epi16(255)), x.even);
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(w, 8), x.odd);
  return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
}
WH_SIMD Ints dot(Bytes w, Inputs x, Ints sum) {
  return {dot_of_eight(w.lo, x, sum.lo), dot_of_eight(w.hi, x, sum.hi)};
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
