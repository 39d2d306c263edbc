// Sixteen floats as the kernels see them, on AVX2 with FMA and F16C: two registers of eight. Each
// instruction set has these headers under the same names; CMake's include path chooses one for each
// compilation. Everything is static and always inlined, so that no copy of it can serve another set.
#pragma once

#include <immintrin.h>

#include <cstdint>

#define WH_SIMD static inline __attribute__((always_inline))

namespace whippet::cpu::WHIPPET_ISA {
namespace {

// Register tiles (16 registers of 8 floats, two FMAs a cycle, latency 4 or 5).
constexpr int kTileRows = 6, kTilePanels = 1;
constexpr int kFewRows = 6;
constexpr int few_panels(int rows) { return rows <= 2 ? 2 : 1; }
constexpr int kScoreQueries = 4, kFewScoreGroups = 2;
constexpr int kMixQueries = 4, kMixVectors = 1;
constexpr int kProbeChains = 12;  // sums of a probe: more than latency times width

struct Vec {
  __m256 lo, hi;
};

WH_SIMD __m256i first_eight(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

WH_SIMD Vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
WH_SIMD Vec broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
WH_SIMD Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
WH_SIMD Vec load_n(const float* p, int n) {
  return {_mm256_maskload_ps(p, first_eight(n)), _mm256_maskload_ps(p + 8, first_eight(n - 8))};
}
WH_SIMD void store(float* p, Vec a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
WH_SIMD void store_n(float* p, Vec a, int n) {
  _mm256_maskstore_ps(p, first_eight(n), a.lo);
  _mm256_maskstore_ps(p + 8, first_eight(n - 8), a.hi);
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
