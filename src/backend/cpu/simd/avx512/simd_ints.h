// Vectors of integers on AVX-512: what products of 8-bit integers have in common with and without VNNI.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

struct Ints {  // one for each output
  __m512i v;
};
struct Bytes {  // [16 outputs][4 columns], unsigned
  __m512i v;
};

WH_SIMD Ints ints(int32_t x) { return {_mm512_set1_epi32(x)}; }
WH_SIMD Vec to_float(Ints a) { return {_mm512_cvtepi32_ps(a.v)}; }
WH_SIMD Bytes load_bytes(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
WH_SIMD Bytes low_nibbles(Bytes b) { return {_mm512_and_si512(b.v, _mm512_set1_epi8(15))}; }
WH_SIMD Bytes high_nibbles(Bytes b) {
  return {_mm512_and_si512(_mm512_srli_epi16(b.v, 4), _mm512_set1_epi8(15))};
}
// Integers within a byte's range; n is 8 or 16.
WH_SIMD void store_integers(int8_t* p, Vec a, int n) {
  _mm512_mask_cvtepi32_storeu_epi8(p, first(n), _mm512_cvtps_epi32(a.v));
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
