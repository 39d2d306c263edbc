// Products of 8-bit integers, four columns of sixteen outputs at a time, on AVX-512 without VNNI: bytes are
// widened to pairs of shorts, whose products fit an int.
#pragma once

#include "simd_ints.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kDotRows = 3, kDotPanels = 3;                       // tile of linear_coded
constexpr int dot_panels(int rows) { return rows <= 2 ? 4 : 3; }  // of few rows

struct Inputs {  // the same four columns for every output
  __m512i even, odd;
};

WH_SIMD Inputs inputs(const int8_t* q) {
  int32_t four;
  __builtin_memcpy(&four, q, sizeof(four));
  const __m512i all = _mm512_set1_epi32(four);
  return {_mm512_srai_epi16(_mm512_slli_epi16(all, 8), 8), _mm512_srai_epi16(all, 8)};
}
WH_SIMD Ints dot(Bytes w, Inputs x, Ints sum) {
  const __m512i even = _mm512_madd_epi16(_mm512_and_si512(w.v, _mm512_set1_epi16(255)), x.even);
  const __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(w.v, 8), x.odd);
  return {_mm512_add_epi32(sum.v, _mm512_add_epi32(even, odd))};
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
