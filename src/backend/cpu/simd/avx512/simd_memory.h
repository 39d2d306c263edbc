// Sixteen floats as the kernels see them, on AVX-512 (F, BW, VL, DQ). Each
// instruction set has these headers under the same names; CMake's include path chooses one for each
// compilation. Everything is static and always inlined, so that no copy of it can serve another set.
#pragma once

#include <immintrin.h>

#include <cstdint>

#define WH_SIMD static inline __attribute__((always_inline))

namespace whippet::cpu::WHIPPET_ISA {
namespace {

// Register tiles (32 registers of 16 floats; one FMA a cycle or two, latency 4).
constexpr int kTileRows = 6, kTilePanels = 4;                     // product of many rows
constexpr int kFewRows = 8;                                       // product of few rows:
constexpr int few_panels(int rows) { return rows <= 6 ? 4 : 3; }  // panels in flight
constexpr int kScoreQueries = 8, kFewScoreGroups = 4;             // q k^T
constexpr int kMixQueries = 4, kMixVectors = 4;                   // p v
constexpr int kProbeChains = 12;  // sums of a probe: more than latency times width

struct Vec {
  __m512 v;
};

WH_SIMD __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1); }

WH_SIMD Vec zero() { return {_mm512_setzero_ps()}; }
WH_SIMD Vec broadcast(float x) { return {_mm512_set1_ps(x)}; }
WH_SIMD Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
WH_SIMD Vec load_n(const float* p, int n) { return {_mm512_maskz_loadu_ps(first(n), p)}; }
WH_SIMD void store(float* p, Vec a) { _mm512_storeu_ps(p, a.v); }
WH_SIMD void store_n(float* p, Vec a, int n) { _mm512_mask_storeu_ps(p, first(n), a.v); }

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
