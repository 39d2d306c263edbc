// e^x on sixteen floats, for the kernel files (compiled once per instruction set).
#pragma once

#include "simd_math.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

// x = n ln 2 + r with |r| <= ln 2 / 2, e^x = 2^n (1 + r + r^2 q(r)); q is the minimax polynomial of degree 4
// (relative error of e^r: 2^-27.9). ln 2 is split in two so that n * high is exact. Rounding: r 2^-26, r^2 q
// 2^-26, the last sum 2^-24; together below 2^-23 relative. Below -87.3 (where 2^n leaves the normal numbers)
// the result is 0, above 88 it stays at e^88; NaN stays NaN.
WH_SIMD Vec exp(Vec x) {
  const Vec capped = min(broadcast(88.0f), x);
  const Vec n = round(capped * broadcast(0x1.715476p+0f));
  Vec r = fma(n, broadcast(-0.693359375f), capped);
  r = fma(n, broadcast(0x1.bd0106p-13f), r);
  Vec q = fma(r, broadcast(0x1.6a2444p-10f), broadcast(0x1.1239e2p-7f));
  q = fma(r, q, broadcast(0x1.5558f2p-5f));
  q = fma(r, q, broadcast(0x1.555492p-3f));
  q = fma(r, q, broadcast(0x1.fffffcp-2f));
  const Vec power = fma(r * r, q, r) + broadcast(1.0f);
  return select_below(x, -87.3f, zero(), scale_by_power(power, n));
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
