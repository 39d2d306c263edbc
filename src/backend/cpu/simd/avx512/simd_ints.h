// Vectors of integers on AVX-512: what products of integers have in common with and without VNNI.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

struct Ints {  // one for each output
  __m512i v;
};
struct Shorts {  // [16 outputs][2 columns]
  __m512i v;
};

WH_SIMD Ints ints(int32_t x) { return {_mm512_set1_epi32(x)}; }
WH_SIMD Vec to_float(Ints a) { return {_mm512_cvtepi32_ps(a.v)}; }
WH_SIMD Shorts load_codes(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
// kBits bits of each short from bit kShift on.
template <int kShift, int kBits>
WH_SIMD Shorts field(Shorts s) {
  const __m512i low = kShift > 0 ? _mm512_srli_epi16(s.v, kShift) : s.v;
  return {kShift + kBits < 16 ? _mm512_and_si512(low, _mm512_set1_epi16((1 << kBits) - 1)) : low};
}
// The same two columns for every output.
WH_SIMD Shorts broadcast_pair(const int16_t* q) {
  int32_t two;
  __builtin_memcpy(&two, q, sizeof(two));
  return {_mm512_set1_epi32(two)};
}
// Integers within a short's range, of each four the middle two in turned order; n is 8 or 16.
WH_SIMD void store_integers(int16_t* p, Vec a, int n) {
  const __m512i turned = _mm512_shuffle_epi32(_mm512_cvtps_epi32(a.v), _MM_PERM_DBCA);
  _mm512_mask_cvtepi32_storeu_epi16(p, first(n), turned);
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
