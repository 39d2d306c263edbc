// Between floats and the types that weights and caches are kept in.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

WH_SIMD __m256i load_half_bits(const uint16_t* p, int n) {
  return n == 16 ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
                 : _mm256_maskz_loadu_epi16(first(n), p);
}
WH_SIMD Vec load_f16(const uint16_t* p, int n) { return {_mm512_cvtph_ps(load_half_bits(p, n))}; }
WH_SIMD Vec load_bf16(const uint16_t* p, int n) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_half_bits(p, n)), 16))};
}
WH_SIMD void store_f16(uint16_t* p, Vec a, int n) {
  _mm256_mask_storeu_epi16(p, first(n), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
WH_SIMD void store_bf16(uint16_t* p, Vec a, int n) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  const __m512i chosen = _mm512_mask_blend_epi32(nan, rounded, quiet);
  _mm256_mask_storeu_epi16(p, first(n), _mm512_cvtepi32_epi16(_mm512_srli_epi32(chosen, 16)));
}
WH_SIMD Vec load_i8(const int8_t* p, int n) {
  const __m128i bytes =
      n == 16 ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)) : _mm_maskz_loadu_epi8(first(n), p);
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}
// Integers from -128 to 127.
WH_SIMD void store_i8(int8_t* p, Vec a, int n) {
  _mm_mask_storeu_epi8(p, first(n), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v)));
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
