// A fast 64-bit checksum of bytes: any change of one 8-byte word changes it, other damage with overwhelming
// likelihood. It keeps accidents out, not attackers. Used by the packed cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace whippet {

// Long content may be hashed in pieces, the seed of each being the hash of the one before; the same cuts give
// the same hash.
uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);

}  // namespace whippet
