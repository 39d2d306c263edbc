// Products of 8-bit integers, four columns of sixteen outputs at a time, on AVX2 with AVX-VNNI. The rest of
// the set is avx2's.
#pragma once

#include "simd_ints.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kDotRows = 2, kDotPanels = 1;  // tile of linear_coded
constexpr int dot_panels(int) { return 1; }  // of few rows

struct Inputs {  // the same four columns for every output
  __m256i v;
};

WH_SIMD Inputs inputs(const int8_t* q) {
  int32_t four;
  __builtin_memcpy(&four, q, sizeof(four));
  return {_mm256_set1_epi32(four)};
}
WH_SIMD Ints dot(Bytes w, Inputs x, Ints sum) {
  return {_mm256_dpbusd_avx_epi32(sum.lo, w.lo, x.v), _mm256_dpbusd_avx_epi32(sum.hi, w.hi, x.v)};
}
}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
