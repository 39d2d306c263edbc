// Products of 8-bit integers, four columns of sixteen outputs at a time, in plain loops.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kDotRows = 1, kDotPanels = 1;  // tile of linear_coded
constexpr int dot_panels(int) { return 1; }  // of few rows

struct Ints {  // one for each output
  int32_t v[16];
};
struct Bytes {  // [16 outputs][4 columns], unsigned
  uint8_t v[64];
};
struct Inputs {  // the same four columns for every output
  int8_t v[4];
};

WH_SIMD Ints ints(int32_t x) {
  Ints a;
  for (int32_t& each : a.v) each = x;
  return a;
}
WH_SIMD Vec to_float(Ints a) {
  return from_lanes([&](int i) { return static_cast<float>(a.v[i]); });
}
WH_SIMD Bytes load_bytes(const uint8_t* p) {
  Bytes b;
  __builtin_memcpy(&b, p, sizeof(b));
  return b;
}
WH_SIMD Bytes low_nibbles(Bytes b) {
  for (uint8_t& each : b.v) each = static_cast<uint8_t>(each & 15);
  return b;
}
WH_SIMD Bytes high_nibbles(Bytes b) {
  for (uint8_t& each : b.v) each = static_cast<uint8_t>(each >> 4);
  return b;
}
WH_SIMD Inputs inputs(const int8_t* q) {
  Inputs x;
  __builtin_memcpy(&x, q, sizeof(x));
  return x;
}
WH_SIMD Ints dot(Bytes w, Inputs x, Ints sum) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 4; ++j) sum.v[i] += w.v[4 * i + j] * x.v[j];
  return sum;
}
// Integers within a byte's range; n is 8 or 16.
WH_SIMD void store_integers(int8_t* p, Vec a, int n) {
  for (int i = 0; i < n; ++i) p[i] = static_cast<int8_t>(lane(a, i));
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
