// Products of 16-bit integers, two columns of sixteen outputs at a time, on AVX2 without VNNI.
#pragma once

#include "simd_ints.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kDotRows = 4, kDotPanels = 1;                       // tile of linear_coded
constexpr int dot_panels(int rows) { return rows <= 2 ? 2 : 1; }  // of few rows

WH_SIMD Ints dot(Shorts w, Shorts x, Ints sum) {
  return {_mm256_add_epi32(sum.lo, _mm256_madd_epi16(w.lo, x.lo)),
          _mm256_add_epi32(sum.hi, _mm256_madd_epi16(w.hi, x.hi))};
}
// The instruction that multiplies most integers, for probes.
constexpr int kMostProducts = 32;
WH_SIMD Ints most_products(Shorts w, Shorts x, Ints sum) { return dot(w, x, sum); }

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
