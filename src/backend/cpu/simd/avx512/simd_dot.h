// Products of 16-bit integers, two columns of sixteen outputs at a time, on AVX-512 without VNNI.
#pragma once

#include "simd_ints.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kDotRows = 4, kDotPanels = 4;  // tile of linear_coded
constexpr int dot_panels(int) { return 4; }  // of few rows

WH_SIMD Ints dot(Shorts w, Shorts x, Ints sum) {
  return {_mm512_add_epi32(sum.v, _mm512_madd_epi16(w.v, x.v))};
}
// The instruction that multiplies most integers, for probes.
constexpr int kMostProducts = 32;
WH_SIMD Ints most_products(Shorts w, Shorts x, Ints sum) { return dot(w, x, sum); }

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
