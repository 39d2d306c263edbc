// Between floats and the types that weights and caches are kept in.
#pragma once

#include "simd_memory.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

typedef int16_t EightShorts __attribute__((vector_size(16)));
// Four shorts in the upper halves of four ints, from the lower or the upper half of eight.
WH_SIMD FourInts raise_low(EightShorts s) {
  return (FourInts)__builtin_shufflevector(EightShorts{}, s, 0, 8, 1, 9, 2, 10, 3, 11);
}
WH_SIMD FourInts raise_high(EightShorts s) {
  return (FourInts)__builtin_shufflevector(EightShorts{}, s, 4, 12, 5, 13, 6, 14, 7, 15);
}
WH_SIMD float widen_f16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu, mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return float_of(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}
WH_SIMD uint16_t narrow_f16(float value) {
  const uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u)  // the addition rounds to multiples of 2^-24
    return static_cast<uint16_t>(sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u));
  return static_cast<uint16_t>(sign | (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13);
}
WH_SIMD uint16_t narrow_bf16(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
// The multiplication moves the exponent's bias and makes subnormals normal; infinity and NaN need more.
WH_SIMD Four widen_f16(FourInts raised) {
  const FourInts magnitude = (raised & 0x7fffffff) >> 3;
  const FourInts special = (FourInts)(magnitude >= 0x0f800000) & 0x7f800000;
  const FourInts scaled = (FourInts)((Four)magnitude * 0x1p112f);
  return (Four)(scaled | special | (raised & (int32_t)0x80000000));
}
WH_SIMD Vec load_f16(const uint16_t* p, int n) {
  if (n == 16) {
    EightShorts low, high;
    __builtin_memcpy(&low, p, sizeof(low));
    __builtin_memcpy(&high, p + 8, sizeof(high));
    return {{widen_f16(raise_low(low)), widen_f16(raise_high(low)), widen_f16(raise_low(high)),
             widen_f16(raise_high(high))}};
  }
  return from_lanes([&](int i) { return i < n ? widen_f16(p[i]) : 0.0f; });
}
WH_SIMD Vec load_bf16(const uint16_t* p, int n) {
  if (n == 16) {
    EightShorts low, high;
    __builtin_memcpy(&low, p, sizeof(low));
    __builtin_memcpy(&high, p + 8, sizeof(high));
    return {{(Four)raise_low(low), (Four)raise_high(low), (Four)raise_low(high), (Four)raise_high(high)}};
  }
  return from_lanes([&](int i) { return i < n ? float_of(static_cast<uint32_t>(p[i]) << 16) : 0.0f; });
}
WH_SIMD void store_f16(uint16_t* p, Vec a, int n) {
  for (int i = 0; i < n; ++i) p[i] = narrow_f16(lane(a, i));
}
WH_SIMD void store_bf16(uint16_t* p, Vec a, int n) {
  for (int i = 0; i < n; ++i) p[i] = narrow_bf16(lane(a, i));
}
typedef int8_t SixteenBytes __attribute__((vector_size(16)));
WH_SIMD Vec load_i8(const int8_t* p, int n) {
  if (n < 16) return from_lanes([&](int i) { return i < n ? static_cast<float>(p[i]) : 0.0f; });
  SixteenBytes s;
  __builtin_memcpy(&s, p, sizeof(s));
  // Each byte in the highest place of an int, from where it is shifted down with its sign.
  const auto widen = [](SixteenBytes raised) {
    return __builtin_convertvector((FourInts)raised >> 24, Four);
  };
  return {
      {widen(__builtin_shufflevector(SixteenBytes{}, s, 0, 0, 0, 16, 0, 0, 0, 17, 0, 0, 0, 18, 0, 0, 0, 19)),
       widen(__builtin_shufflevector(SixteenBytes{}, s, 0, 0, 0, 20, 0, 0, 0, 21, 0, 0, 0, 22, 0, 0, 0, 23)),
       widen(__builtin_shufflevector(SixteenBytes{}, s, 0, 0, 0, 24, 0, 0, 0, 25, 0, 0, 0, 26, 0, 0, 0, 27)),
       widen(
           __builtin_shufflevector(SixteenBytes{}, s, 0, 0, 0, 28, 0, 0, 0, 29, 0, 0, 0, 30, 0, 0, 0, 31))}};
}
// Integers from -128 to 127.
WH_SIMD void store_i8(int8_t* p, Vec a, int n) {
  for (int i = 0; i < n; ++i) p[i] = static_cast<int8_t>(lane(a, i));
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
