// Products of 16-bit integers, two columns of sixteen outputs at a time, on AVX2 with AVX-VNNI. The rest of
// the set is avx2's.
#pragma once

#include "simd_ints.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kDotRows = 4, kDotPanels = 1;                       // tile of linear_coded
constexpr int dot_panels(int rows) { return rows <= 2 ? 2 : 1; }  // of few rows

// The intrinsic makes GCC copy every sum twice a step, from 64-bit lanes to 32-bit ones and back.
WH_SIMD Ints dot(Shorts w, Shorts x, Ints sum) {
  asm("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum.lo) : "x"(w.lo), "x"(x.lo));
  asm("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum.hi) : "x"(w.hi), "x"(x.hi));
  return sum;
}
// The instruction that multiplies most integers, for probes: of 8 bits each.
constexpr int kMostProducts = 64;
WH_SIMD Ints most_products(Shorts w, Shorts x, Ints sum) {
  return {_mm256_dpbusd_avx_epi32(sum.lo, w.lo, x.lo), _mm256_dpbusd_avx_epi32(sum.hi, w.hi, x.hi)};
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
