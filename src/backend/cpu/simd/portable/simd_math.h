// Arithmetic on sixteen floats. There is no fused multiply-add here: fma rounds twice.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

WH_SIMD Vec operator+(Vec a, Vec b) {
  return by_four([&](int i) { return a.v[i] + b.v[i]; });
}
WH_SIMD Vec operator-(Vec a, Vec b) {
  return by_four([&](int i) { return a.v[i] - b.v[i]; });
}
WH_SIMD Vec operator*(Vec a, Vec b) {
  return by_four([&](int i) { return a.v[i] * b.v[i]; });
}
WH_SIMD Vec operator/(Vec a, Vec b) {
  return by_four([&](int i) { return a.v[i] / b.v[i]; });
}
WH_SIMD Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }
WH_SIMD Four choose(FourInts mask, Four yes, Four no) {
  return (Four)(((FourInts)yes & mask) | ((FourInts)no & ~mask));
}
WH_SIMD Vec max(Vec a, Vec b) {
  return by_four([&](int i) { return choose(a.v[i] > b.v[i], a.v[i], b.v[i]); });
}
WH_SIMD Vec min(Vec a, Vec b) {
  return by_four([&](int i) { return choose(a.v[i] < b.v[i], a.v[i], b.v[i]); });
}
// To the nearest integer for |a| < 2^22: the addition rounds the fraction away.
WH_SIMD Vec round(Vec a) { return a + broadcast(0x1.8p23f) - broadcast(0x1.8p23f); }
WH_SIMD Vec scale_by_power(Vec a, Vec n) {
  return by_four(
      [&](int i) { return a.v[i] * (Four)((__builtin_convertvector(n.v[i], FourInts) + 127) << 23); });
}
WH_SIMD Vec select_below(Vec x, float limit, Vec low, Vec high) {
  return by_four([&](int i) { return choose(x.v[i] < limit, low.v[i], high.v[i]); });
}
WH_SIMD Vec absolute(Vec a) {
  return by_four([&](int i) { return (Four)((FourInts)a.v[i] & 0x7fffffff); });
}
WH_SIMD uint32_t at_least(Vec a, Vec b) {
  uint32_t bits = 0;
  for (int i = 0; i < 16; ++i) bits |= static_cast<uint32_t>(lane(a, i) >= lane(b, i)) << i;
  return bits;
}
WH_SIMD uint32_t greater(Vec a, Vec b) {
  uint32_t bits = 0;
  for (int i = 0; i < 16; ++i) bits |= static_cast<uint32_t>(lane(a, i) > lane(b, i)) << i;
  return bits;
}

WH_SIMD float sum(Vec a) {
  const Four four = (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]);
  return (four[0] + four[2]) + (four[1] + four[3]);
}
WH_SIMD float largest(Vec a) {
  float most = lane(a, 0);
  for (int i = 1; i < 16; ++i) most = lane(a, i) > most ? lane(a, i) : most;
  return most;
}

WH_SIMD void transpose(Vec (&rows)[16]) {
  Vec columns[16];
  for (int j = 0; j < 16; ++j) columns[j] = from_lanes([&](int i) { return lane(rows[i], j); });
  for (int j = 0; j < 16; ++j) rows[j] = columns[j];
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
