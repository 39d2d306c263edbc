// Arithmetic on sixteen floats.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

WH_SIMD Vec fma(Vec a, Vec b, Vec c) {
  return by_four([&](int i) { return vfmaq_f32(c.v[i], a.v[i], b.v[i]); });
}
WH_SIMD Vec operator+(Vec a, Vec b) {
  return by_four([&](int i) { return vaddq_f32(a.v[i], b.v[i]); });
}
WH_SIMD Vec operator-(Vec a, Vec b) {
  return by_four([&](int i) { return vsubq_f32(a.v[i], b.v[i]); });
}
WH_SIMD Vec operator*(Vec a, Vec b) {
  return by_four([&](int i) { return vmulq_f32(a.v[i], b.v[i]); });
}
WH_SIMD Vec operator/(Vec a, Vec b) {
  return by_four([&](int i) { return vdivq_f32(a.v[i], b.v[i]); });
}
// FMAX and FMIN are not used: of a number and NaN the kernels want the second operand.
WH_SIMD float32x4_t max_four(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
WH_SIMD Vec max(Vec a, Vec b) {
  return by_four([&](int i) { return max_four(a.v[i], b.v[i]); });
}
WH_SIMD Vec min(Vec a, Vec b) {
  return by_four([&](int i) { return vbslq_f32(vcltq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]); });
}
WH_SIMD Vec round(Vec a) {
  return by_four([&](int i) { return vrndnq_f32(a.v[i]); });
}
WH_SIMD Vec scale_by_power(Vec a, Vec n) {
  return by_four([&](int i) {
    const int32x4_t biased = vaddq_s32(vcvtnq_s32_f32(n.v[i]), vdupq_n_s32(127));
    return vmulq_f32(a.v[i], vreinterpretq_f32_s32(vshlq_n_s32(biased, 23)));
  });
}
WH_SIMD Vec select_below(Vec x, float limit, Vec low, Vec high) {
  return by_four(
      [&](int i) { return vbslq_f32(vcltq_f32(x.v[i], vdupq_n_f32(limit)), low.v[i], high.v[i]); });
}
WH_SIMD Vec absolute(Vec a) {
  return by_four([&](int i) { return vabsq_f32(a.v[i]); });
}
// A bit for each lane from masks of four lanes each.
WH_SIMD uint32_t bits_of(uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d) {
  const uint16x8_t low = vcombine_u16(vmovn_u32(a), vmovn_u32(b));
  const uint16x8_t high = vcombine_u16(vmovn_u32(c), vmovn_u32(d));
  const uint8x8_t weights = vcreate_u8(0x8040201008040201);
  return static_cast<uint32_t>(vaddv_u8(vand_u8(vmovn_u16(low), weights))) |
         static_cast<uint32_t>(vaddv_u8(vand_u8(vmovn_u16(high), weights))) << 8;
}
WH_SIMD uint32_t at_least(Vec a, Vec b) {
  return bits_of(vcgeq_f32(a.v[0], b.v[0]), vcgeq_f32(a.v[1], b.v[1]), vcgeq_f32(a.v[2], b.v[2]),
                 vcgeq_f32(a.v[3], b.v[3]));
}
WH_SIMD uint32_t greater(Vec a, Vec b) {
  return bits_of(vcgtq_f32(a.v[0], b.v[0]), vcgtq_f32(a.v[1], b.v[1]), vcgtq_f32(a.v[2], b.v[2]),
                 vcgtq_f32(a.v[3], b.v[3]));
}

WH_SIMD float sum(Vec a) {
  const float32x4_t four = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
WH_SIMD float largest(Vec a) {
  return vmaxnmvq_f32(max_four(max_four(a.v[0], a.v[2]), max_four(a.v[1], a.v[3])));
}

WH_SIMD float32x4_t low_halves(float32x4_t a, float32x4_t b) {
  return vreinterpretq_f32_f64(vtrn1q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}
WH_SIMD float32x4_t high_halves(float32x4_t a, float32x4_t b) {
  return vreinterpretq_f32_f64(vtrn2q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}
// Lanes [4 * part, 4 * part + 4) of four rows become rows of their own, at lanes [4 * to, 4 * to + 4).
WH_SIMD void transpose_four(const Vec* rows, int part, Vec* columns, int to) {
  const float32x4_t a = rows[0].v[part], b = rows[1].v[part], c = rows[2].v[part], d = rows[3].v[part];
  const float32x4_t even_ab = vtrn1q_f32(a, b), odd_ab = vtrn2q_f32(a, b);
  const float32x4_t even_cd = vtrn1q_f32(c, d), odd_cd = vtrn2q_f32(c, d);
  columns[0].v[to] = low_halves(even_ab, even_cd);
  columns[1].v[to] = low_halves(odd_ab, odd_cd);
  columns[2].v[to] = high_halves(even_ab, even_cd);
  columns[3].v[to] = high_halves(odd_ab, odd_cd);
}
WH_SIMD void transpose(Vec (&rows)[16]) {
  Vec columns[16];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) transpose_four(rows + 4 * i, j, columns + 4 * j, i);
  for (int i = 0; i < 16; ++i) rows[i] = columns[i];
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
