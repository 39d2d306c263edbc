// Sixteen floats as the kernels see them, on the Advanced SIMD that every 64-bit ARM processor has: four
// registers of four. Each instruction set has these headers under the same names; CMake's include path
// chooses one for each compilation. Everything is static and always inlined, so that no copy of it can serve
// another set.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#define WH_SIMD static inline __attribute__((always_inline))

namespace whippet::cpu::WHIPPET_ISA {
namespace {

// Register tiles (32 registers of 4 floats; two to four FMAs a cycle, latency 4). Not measured yet.
constexpr int kTileRows = 5, kTilePanels = 1;
constexpr int kFewRows = 5;
constexpr int few_panels(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }
constexpr int kScoreQueries = 4, kFewScoreGroups = 2;
constexpr int kMixQueries = 4, kMixVectors = 1;
constexpr int kProbeChains =
    6;  // sums of a probe: more than latency times width, no more than the registers hold

struct Vec {
  float32x4_t v[4];
};

template <class F>
WH_SIMD Vec by_four(const F& value) {
  return {{value(0), value(1), value(2), value(3)}};
}

WH_SIMD Vec broadcast(float x) {
  return by_four([&](int) { return vdupq_n_f32(x); });
}
WH_SIMD Vec zero() { return broadcast(0); }
WH_SIMD Vec load(const float* p) {
  return by_four([&](int i) { return vld1q_f32(p + 4 * i); });
}
WH_SIMD Vec load_n(const float* p, int n) {
  if (n >= 16) return load(p);
  float some[16] = {};
  for (int i = 0; i < n; ++i) some[i] = p[i];
  return load(some);
}
WH_SIMD void store(float* p, Vec a) {
  vst1q_f32(p, a.v[0]);
  vst1q_f32(p + 4, a.v[1]);
  vst1q_f32(p + 8, a.v[2]);
  vst1q_f32(p + 12, a.v[3]);
}
WH_SIMD void store_n(float* p, Vec a, int n) {
  if (n >= 16) return store(p, a);
  float some[16];
  store(some, a);
  for (int i = 0; i < n; ++i) p[i] = some[i];
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
