// Products of 16-bit integers, two columns of sixteen outputs at a time, on Advanced SIMD: SMLAL and SMLAL2.
// The dot product instructions of later processors multiply 8 bits, which inputs do not fit into.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int kDotRows = 4, kDotPanels = 1;                       // tile of linear_coded
constexpr int dot_panels(int rows) { return rows <= 2 ? 2 : 1; }  // of few rows

struct Ints {  // one for each output
  int32x4_t v[4];
};
struct Shorts {  // [2 columns][16 outputs]
  uint16x8_t v[4];
};

WH_SIMD Ints ints(int32_t x) { return {{vdupq_n_s32(x), vdupq_n_s32(x), vdupq_n_s32(x), vdupq_n_s32(x)}}; }
WH_SIMD Vec to_float(Ints a) {
  return by_four([&](int i) { return vcvtq_f32_s32(a.v[i]); });
}
// In memory the two columns of an output are side by side.
WH_SIMD Shorts load_codes(const uint8_t* p) {
  const uint16x8_t a = vreinterpretq_u16_u8(vld1q_u8(p)), b = vreinterpretq_u16_u8(vld1q_u8(p + 16));
  const uint16x8_t c = vreinterpretq_u16_u8(vld1q_u8(p + 32)), d = vreinterpretq_u16_u8(vld1q_u8(p + 48));
  return {{vuzp1q_u16(a, b), vuzp1q_u16(c, d), vuzp2q_u16(a, b), vuzp2q_u16(c, d)}};
}
template <int kShift, int kBits>
WH_SIMD uint16x8_t field_of_eight(uint16x8_t s) {
  if constexpr (kShift > 0) s = vshrq_n_u16(s, kShift);
  if constexpr (kShift + kBits < 16) s = vandq_u16(s, vdupq_n_u16((1 << kBits) - 1));
  return s;
}
// kBits bits of each short from bit kShift on.
template <int kShift, int kBits>
WH_SIMD Shorts field(Shorts s) {
  return {{field_of_eight<kShift, kBits>(s.v[0]), field_of_eight<kShift, kBits>(s.v[1]),
           field_of_eight<kShift, kBits>(s.v[2]), field_of_eight<kShift, kBits>(s.v[3])}};
}
// The same two columns for every output.
WH_SIMD Shorts broadcast_pair(const int16_t* q) {
  const uint16x8_t first = vreinterpretq_u16_s16(vdupq_n_s16(q[0]));
  const uint16x8_t second = vreinterpretq_u16_s16(vdupq_n_s16(q[1]));
  return {{first, first, second, second}};
}
WH_SIMD void add_products(uint16x8_t w, uint16x8_t x, int32x4_t& low, int32x4_t& high) {
  const int16x8_t a = vreinterpretq_s16_u16(w), b = vreinterpretq_s16_u16(x);
  low = vmlal_s16(low, vget_low_s16(a), vget_low_s16(b));
  high = vmlal_high_s16(high, a, b);
}
WH_SIMD Ints dot(Shorts w, Shorts x, Ints sum) {
  add_products(w.v[0], x.v[0], sum.v[0], sum.v[1]);
  add_products(w.v[1], x.v[1], sum.v[2], sum.v[3]);
  add_products(w.v[2], x.v[2], sum.v[0], sum.v[1]);
  add_products(w.v[3], x.v[3], sum.v[2], sum.v[3]);
  return sum;
}
// The instruction that multiplies most integers, for probes.
constexpr int kMostProducts = 32;
WH_SIMD Ints most_products(Shorts w, Shorts x, Ints sum) { return dot(w, x, sum); }
// Integers within a short's range, of each four the middle two in turned order.
WH_SIMD int16x4_t turned_shorts(float32x4_t a) {
  const int16x4_t four = vmovn_s32(vcvtnq_s32_f32(a));
  return vzip1_s16(four, vext_s16(four, four, 2));
}
// n is 8 or 16.
WH_SIMD void store_integers(int16_t* p, Vec a, int n) {
  vst1_s16(p, turned_shorts(a.v[0]));
  vst1_s16(p + 4, turned_shorts(a.v[1]));
  if (n == 8) return;
  vst1_s16(p + 8, turned_shorts(a.v[2]));
  vst1_s16(p + 12, turned_shorts(a.v[3]));
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
