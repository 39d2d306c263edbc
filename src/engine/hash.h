// One small mixing function for seeds and tables.
#pragma once

#include <cstdint>

namespace whippet {

// 64 well mixed bits of two numbers (the finaliser of SplitMix64; Steele, Lea and Flood 2014).
constexpr uint64_t hash_mix(uint64_t a, uint64_t b) {
  uint64_t x = a + 0x9e3779b97f4a7c15u * (b + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace whippet
