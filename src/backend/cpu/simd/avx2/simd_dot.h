// Products of 8-bit integers, four columns of sixteen outputs at a time, on AVX2 without VNNI: bytes are
// widened to pairs of shorts, whose products fit an int.
#pragma once

#include "simd_ints.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kDotRows = 2, kDotPanels = 1;  // tile of linear_coded
constexpr int dot_panels(int) { return 1; }  // of few rows

struct Inputs {  // the same four columns for every output
  __m256i even, odd;
};

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

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
