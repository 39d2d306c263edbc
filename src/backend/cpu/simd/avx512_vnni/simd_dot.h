// Products of 8-bit integers, four columns of sixteen outputs at a time, on AVX-512 with VNNI. The rest of
// the set is avx512's.
#pragma once

#include "simd_ints.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kDotRows = 4, kDotPanels = 3;                       // tile of linear_coded
constexpr int dot_panels(int rows) { return rows <= 3 ? 4 : 3; }  // of few rows

struct Inputs {  // the same four columns for every output
  __m512i v;
};

WH_SIMD Inputs inputs(const int8_t* q) {
  int32_t four;
  __builtin_memcpy(&four, q, sizeof(four));
  return {_mm512_set1_epi32(four)};
}
WH_SIMD Ints dot(Bytes w, Inputs x, Ints sum) { return {_mm512_dpbusd_epi32(sum.v, w.v, x.v)}; }
}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
