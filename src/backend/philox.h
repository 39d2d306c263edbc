// Counter-based randomness: what a draw is depends on (seed, position) alone, never on the batch or on how
// many draws came before. Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011. Shared by the reference and the backends.
#pragma once

#include <array>
#include <cstdint>

namespace whippet {

constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Uniform in [0, 1), a multiple of 2^-53.
constexpr double uniform_draw(uint64_t seed, int64_t position) {
  const auto p = static_cast<uint64_t>(position);
  const auto bits = philox4x32({static_cast<uint32_t>(p), static_cast<uint32_t>(p >> 32), 0, 0},
                               {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t wide = (uint64_t{bits[0]} << 32) | bits[1];
  return static_cast<double>(wide >> 11) * 0x1p-53;
}

}  // namespace whippet
