// Loops that show what a core can do at most.
#include "backend/cpu/kernel_functions.h"
#include "simd_math.h"

namespace whippet::cpu::WHIPPET_ISA {

double fma_burst(int64_t rounds, float* sink) {
  Vec sums[kProbeChains];
  for (int i = 0; i < kProbeChains; ++i) sums[i] = broadcast(static_cast<float>(i));
  const Vec factor = broadcast(0x1p-30f);  // sums stay what they are, and no register is copied
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kProbeChains; ++i) sums[i] = fma(sums[i], factor, sums[i]);
  }
  Vec all = sums[0];
#pragma GCC unroll 16
  for (int i = 1; i < kProbeChains; ++i) all = all + sums[i];
  *sink = sum(all);
  return 2.0 * 16 * kProbeChains * static_cast<double>(rounds);
}

void read_burst(const float* data, int64_t count, float* sink) {
  // Four streams, as the products read their panels.
  const int64_t quarter = count / 4 / 64 * 64;
  Vec sums[4] = {zero(), zero(), zero(), zero()};
  for (int64_t i = 0; i < quarter; i += 16) {
#pragma GCC unroll 4
    for (int s = 0; s < 4; ++s) sums[s] = max(sums[s], load(data + s * quarter + i));
  }
  *sink = sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

}  // namespace whippet::cpu::WHIPPET_ISA
