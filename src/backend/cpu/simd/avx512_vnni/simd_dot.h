// Products of 16-bit integers, two columns of sixteen outputs at a time, on AVX-512 with VNNI. The rest of
// the set is avx512's.
#pragma once

#include "simd_ints.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kDotRows = 4, kDotPanels = 4;  // tile of linear_coded
constexpr int dot_panels(int) { return 4; }  // of few rows

// The intrinsic makes GCC copy every sum twice a step, from 64-bit lanes to 32-bit ones and back.
WH_SIMD Ints dot(Shorts w, Shorts x, Ints sum) {
  asm("vpdpwssd %2, %1, %0" : "+v"(sum.v) : "v"(w.v), "v"(x.v));
  return sum;
}
// The instruction that multiplies most integers, for probes: of 8 bits each.
constexpr int kMostProducts = 64;
WH_SIMD Ints most_products(Shorts w, Shorts x, Ints sum) { return {_mm512_dpbusd_epi32(sum.v, w.v, x.v)}; }

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
