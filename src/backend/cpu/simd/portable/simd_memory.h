// Sixteen floats as the kernels see them, in the compiler's own vectors: what every machine can run. Each
// instruction set has these headers under the same names; CMake's include path chooses one for each
// compilation. Everything is static and always inlined, so that no copy of it can serve another set.
#pragma once

#include <cstdint>

#define WH_SIMD static inline __attribute__((always_inline))

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kTileRows = 2, kTilePanels = 1;
constexpr int kFewRows = 4;
constexpr int few_panels(int) { return 1; }
constexpr int kScoreQueries = 2, kFewScoreGroups = 1;
constexpr int kMixQueries = 2, kMixVectors = 1;
constexpr int kProbeChains = 12;  // sums of a probe: more than latency times width

typedef float Four __attribute__((vector_size(16)));
typedef int32_t FourInts __attribute__((vector_size(16)));
struct Vec {
  Four v[4];
};

template <class F>
WH_SIMD Vec from_lanes(const F& value) {
  Vec a;
  for (int i = 0; i < 4; ++i)
    a.v[i] = Four{value(4 * i), value(4 * i + 1), value(4 * i + 2), value(4 * i + 3)};
  return a;
}
template <class F>
WH_SIMD Vec by_four(const F& value) {
  return {{value(0), value(1), value(2), value(3)}};
}
WH_SIMD float lane(Vec a, int i) { return a.v[i / 4][i % 4]; }
WH_SIMD uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
WH_SIMD float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

WH_SIMD Vec broadcast(float x) {
  return by_four([&](int) { return Four{x, x, x, x}; });
}
WH_SIMD Vec zero() { return broadcast(0); }
WH_SIMD Vec load(const float* p) {
  return by_four([&](int i) {
    Four four;
    __builtin_memcpy(&four, p + 4 * i, sizeof(four));
    return four;
  });
}
WH_SIMD Vec load_n(const float* p, int n) {
  return from_lanes([&](int i) { return i < n ? p[i] : 0.0f; });
}
WH_SIMD void store(float* p, Vec a) { __builtin_memcpy(p, &a, sizeof(a)); }
WH_SIMD void store_n(float* p, Vec a, int n) {
  for (int i = 0; i < n; ++i) p[i] = lane(a, i);
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
