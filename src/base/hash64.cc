#include "base/hash64.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace whippet {
namespace {

constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
constexpr size_t kLanes = 8;                   // independent chains hide the latency of multiplication

// Bijective in each argument while the other stays.
uint64_t mixed(uint64_t state, uint64_t word) { return std::rotl((state ^ word) * kOdd, 29); }

}  // namespace

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed) {
  std::array<uint64_t, kLanes> lanes;
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = seed + (i + 1) * kOdd;
  size_t at = 0;
  for (; bytes.size() - at >= sizeof(lanes); at += sizeof(lanes)) {
    std::array<uint64_t, kLanes> words;
    std::memcpy(words.data(), bytes.data() + at, sizeof(words));
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = mixed(lanes[i], words[i]);
  }
  uint64_t hash = mixed(seed, bytes.size());
  for (const uint64_t lane : lanes) hash = mixed(hash, lane);
  for (; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof(word), bytes.size() - at));
    hash = mixed(hash, word);
  }
  hash ^= hash >> 32;
  return hash * kOdd;
}

}  // namespace whippet
