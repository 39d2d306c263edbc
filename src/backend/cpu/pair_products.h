// Products of pairs of bf16 on AVX-512 with BF16. The rest of the set is avx512's.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kPairRows = 6, kPairPanels = 4;  // tile of linear_pairs

struct Pairs {  // two columns for each of sixteen outputs
  __m512bh v;
};

WH_SIMD Pairs load_pairs(const uint32_t* p) { return {(__m512bh)_mm512_loadu_si512(p)}; }
WH_SIMD Pairs broadcast_pair(uint32_t pair) { return {(__m512bh)_mm512_set1_epi32(static_cast<int>(pair))}; }
// Subnormal factors and results count as 0; both products are added in fp32.
WH_SIMD Vec dot(Pairs w, Pairs x, Vec sum) { return {_mm512_dpbf16_ps(sum.v, w.v, x.v)}; }

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
