// Between floats and the types that weights and caches are kept in.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

struct Halves {
  uint16x8_t lo, hi;
};
WH_SIMD Halves load_half_bits(const uint16_t* p, int n) {
  uint16_t some[16] = {};
  if (n < 16) {
    for (int i = 0; i < n; ++i) some[i] = p[i];
    p = some;
  }
  return {vld1q_u16(p), vld1q_u16(p + 8)};
}
WH_SIMD void store_half_bits(uint16_t* p, Halves bits, int n) {
  uint16_t some[16];
  uint16_t* to = n < 16 ? some : p;
  vst1q_u16(to, bits.lo);
  vst1q_u16(to + 8, bits.hi);
  for (int i = 0; n < 16 && i < n; ++i) p[i] = some[i];
}
WH_SIMD Vec load_f16(const uint16_t* p, int n) {
  const Halves bits = load_half_bits(p, n);
  const float16x8_t lo = vreinterpretq_f16_u16(bits.lo), hi = vreinterpretq_f16_u16(bits.hi);
  return {{vcvt_f32_f16(vget_low_f16(lo)), vcvt_high_f32_f16(lo), vcvt_f32_f16(vget_low_f16(hi)),
           vcvt_high_f32_f16(hi)}};
}
// Shorts into the upper halves of words.
WH_SIMD float32x4_t widen_low_bf16(uint16x8_t bits) {
  return vreinterpretq_f32_u16(vzip1q_u16(vdupq_n_u16(0), bits));
}
WH_SIMD float32x4_t widen_high_bf16(uint16x8_t bits) {
  return vreinterpretq_f32_u16(vzip2q_u16(vdupq_n_u16(0), bits));
}
WH_SIMD Vec load_bf16(const uint16_t* p, int n) {
  const Halves bits = load_half_bits(p, n);
  return {
      {widen_low_bf16(bits.lo), widen_high_bf16(bits.lo), widen_low_bf16(bits.hi), widen_high_bf16(bits.hi)}};
}
WH_SIMD uint16x8_t narrow_f16(float32x4_t a, float32x4_t b) {
  return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(a), b));
}
WH_SIMD void store_f16(uint16_t* p, Vec a, int n) {
  store_half_bits(p, {narrow_f16(a.v[0], a.v[1]), narrow_f16(a.v[2], a.v[3])}, n);
}
WH_SIMD uint32x4_t round_bf16(float32x4_t a) {
  const uint32x4_t bits = vreinterpretq_u32_f32(a);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vbslq_u32(vceqq_f32(a, a), rounded, quiet);
}
WH_SIMD uint16x8_t narrow_bf16(float32x4_t a, float32x4_t b) {
  return vcombine_u16(vshrn_n_u32(round_bf16(a), 16), vshrn_n_u32(round_bf16(b), 16));
}
WH_SIMD void store_bf16(uint16_t* p, Vec a, int n) {
  store_half_bits(p, {narrow_bf16(a.v[0], a.v[1]), narrow_bf16(a.v[2], a.v[3])}, n);
}
WH_SIMD Vec load_i8(const int8_t* p, int n) {
  int8_t some[16] = {};
  if (n < 16) {
    for (int i = 0; i < n; ++i) some[i] = p[i];
    p = some;
  }
  const int8x16_t bytes = vld1q_s8(p);
  const int16x8_t lo = vmovl_s8(vget_low_s8(bytes)), hi = vmovl_high_s8(bytes);
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(lo))), vcvtq_f32_s32(vmovl_high_s16(lo)),
           vcvtq_f32_s32(vmovl_s16(vget_low_s16(hi))), vcvtq_f32_s32(vmovl_high_s16(hi))}};
}
WH_SIMD int16x8_t narrow_i16(float32x4_t a, float32x4_t b) {
  return vcombine_s16(vmovn_s32(vcvtnq_s32_f32(a)), vmovn_s32(vcvtnq_s32_f32(b)));
}
// Integers from -128 to 127.
WH_SIMD void store_i8(int8_t* p, Vec a, int n) {
  int8_t some[16];
  int8_t* to = n < 16 ? some : p;
  vst1q_s8(to, vcombine_s8(vmovn_s16(narrow_i16(a.v[0], a.v[1])), vmovn_s16(narrow_i16(a.v[2], a.v[3]))));
  for (int i = 0; n < 16 && i < n; ++i) p[i] = some[i];
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
