// Vectors of integers on AVX2: what products of integers have in common with and without VNNI.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

struct Ints {  // one for each output
  __m256i lo, hi;
};
struct Shorts {  // [16 outputs][2 columns]
  __m256i lo, hi;
};

WH_SIMD Ints ints(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
WH_SIMD Vec to_float(Ints a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
WH_SIMD Shorts load_codes(const uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
template <int kShift, int kBits>
WH_SIMD __m256i field_of_eight(__m256i s) {
  const __m256i low = kShift > 0 ? _mm256_srli_epi16(s, kShift) : s;
  return kShift + kBits < 16 ? _mm256_and_si256(low, _mm256_set1_epi16((1 << kBits) - 1)) : low;
}
// kBits bits of each short from bit kShift on.
template <int kShift, int kBits>
WH_SIMD Shorts field(Shorts s) {
  return {field_of_eight<kShift, kBits>(s.lo), field_of_eight<kShift, kBits>(s.hi)};
}
// The same two columns for every output.
WH_SIMD Shorts broadcast_pair(const int16_t* q) {
  int32_t two;
  __builtin_memcpy(&two, q, sizeof(two));
  return {_mm256_set1_epi32(two), _mm256_set1_epi32(two)};
}
// Integers within a short's range, of each four the middle two in turned order; n is 8 or 16.
WH_SIMD void store_integers(int16_t* p, Vec a, int n) {
  const __m256i low = _mm256_shuffle_epi32(_mm256_cvtps_epi32(a.lo), 0xd8);
  const __m256i high = _mm256_shuffle_epi32(_mm256_cvtps_epi32(a.hi), 0xd8);
  const __m256i shorts = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
  if (n == 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), shorts);
  else
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(shorts));
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
