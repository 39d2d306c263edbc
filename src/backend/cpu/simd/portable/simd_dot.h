// Products of 16-bit integers, two columns of sixteen outputs at a time, in plain loops.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kDotRows = 1, kDotPanels = 1;  // tile of linear_coded
constexpr int dot_panels(int) { return 1; }  // of few rows

struct Ints {  // one for each output
  int32_t v[16];
};
struct Shorts {  // [16 outputs][2 columns]
  uint16_t v[32];
};

WH_SIMD Ints ints(int32_t x) {
  Ints a;
  for (int32_t& each : a.v) each = x;
  return a;
}
WH_SIMD Vec to_float(Ints a) {
  return from_lanes([&](int i) { return static_cast<float>(a.v[i]); });
}
WH_SIMD Shorts load_codes(const uint8_t* p) {
  Shorts s;
  for (int i = 0; i < 32; ++i) s.v[i] = static_cast<uint16_t>(p[2 * i] | p[2 * i + 1] << 8);
  return s;
}
// kBits bits of each short from bit kShift on.
template <int kShift, int kBits>
WH_SIMD Shorts field(Shorts s) {
  for (uint16_t& each : s.v) each = static_cast<uint16_t>(each >> kShift & ((1 << kBits) - 1));
  return s;
}
// The same two columns for every output.
WH_SIMD Shorts broadcast_pair(const int16_t* q) {
  Shorts s;
  for (int i = 0; i < 32; ++i) s.v[i] = static_cast<uint16_t>(q[i % 2]);
  return s;
}
WH_SIMD Ints dot(Shorts w, Shorts x, Ints sum) {
  for (int i = 0; i < 32; ++i) sum.v[i / 2] += static_cast<int16_t>(w.v[i]) * static_cast<int16_t>(x.v[i]);
  return sum;
}
// The instruction that multiplies most integers, for probes.
constexpr int kMostProducts = 32;
WH_SIMD Ints most_products(Shorts w, Shorts x, Ints sum) { return dot(w, x, sum); }
// Integers within a short's range, of each four the middle two in turned order; n is 8 or 16.
WH_SIMD void store_integers(int16_t* p, Vec a, int n) {
  for (int i = 0; i < n; ++i) {
    const int from = i % 4 == 1 ? i + 1 : i % 4 == 2 ? i - 1 : i;
    p[i] = static_cast<int16_t>(lane(a, from));
  }
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
