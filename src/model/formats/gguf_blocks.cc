#include "model/formats/gguf_blocks.h"

#include <cstring>

#include "tensor/dtype.h"

namespace whippet {
namespace {

using Codes = CanonicalLinear::Codes;

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

float load_half(const std::byte* from) { return f16_to_f32(load<uint16_t>(from)); }
uint32_t byte_at(const std::byte* from, int i) { return std::to_integer<uint32_t>(from[i]); }
std::byte code(int value) { return static_cast<std::byte>(static_cast<uint8_t>(value)); }

constexpr int kSmall = 32;  // elements of the small blocks

// 16 bytes: the low nibbles are the first 16 codes, the high ones the last.
void unpack_nibbles(const std::byte* from, std::byte* codes) {
  for (int i = 0; i < kSmall / 2; ++i) {
    codes[i] = from[i] & std::byte{15};
    codes[i + kSmall / 2] = from[i] >> 4;
  }
}

// The same with a fifth bit each, from the 32 bits of `high`.
void unpack_five_bits(const std::byte* from, uint32_t high, int offset, std::byte* codes) {
  for (int i = 0; i < kSmall / 2; ++i) {
    const uint32_t low = byte_at(from, i);
    codes[i] = code(static_cast<int>((low & 15u) | ((high >> i & 1u) << 4)) - offset);
    codes[i + kSmall / 2] = code(static_cast<int>((low >> 4) | ((high >> (i + 16) & 1u) << 4)) - offset);
  }
}

// x = (q - 8) d, as q d - 8 d: both products are exact in fp32.
void unpack_q4_0(const std::byte* block, std::byte* codes, float* scale, float* min) {
  *scale = load_half(block);
  *min = -8 * *scale;
  unpack_nibbles(block + 2, codes);
}

// x = q d + m.
void unpack_q4_1(const std::byte* block, std::byte* codes, float* scale, float* min) {
  *scale = load_half(block);
  *min = load_half(block + 2);
  unpack_nibbles(block + 4, codes);
}

// x = (q - 16) d.
void unpack_q5_0(const std::byte* block, std::byte* codes, float* scale, float*) {
  *scale = load_half(block);
  unpack_five_bits(block + 6, load<uint32_t>(block + 2), 16, codes);
}

// x = q d + m.
void unpack_q5_1(const std::byte* block, std::byte* codes, float* scale, float* min) {
  *scale = load_half(block);
  *min = load_half(block + 2);
  unpack_five_bits(block + 8, load<uint32_t>(block + 4), 0, codes);
}

// x = q d.
void unpack_q8_0(const std::byte* block, std::byte* codes, float* scale, float*) {
  *scale = load_half(block);
  std::memcpy(codes, block + 2, kSmall);
}

// The 8 six-bit scales and minima of Q4_K and Q5_K, packed into 12 bytes: x = d sc q - dmin m.
void unpack_k_scales(const std::byte* block, float* scale, float* min) {
  const float d = load_half(block);
  const float dmin = load_half(block + 2);
  const std::byte* s = block + 4;
  for (int j = 0; j < 8; ++j) {
    const uint32_t sc =
        j < 4 ? byte_at(s, j) & 63u : (byte_at(s, j + 4) & 15u) | (byte_at(s, j - 4) >> 6 << 4);
    const uint32_t m = j < 4 ? byte_at(s, j + 4) & 63u : byte_at(s, j + 4) >> 4 | (byte_at(s, j) >> 6 << 4);
    scale[j] = d * static_cast<float>(sc);
    min[j] = -(dmin * static_cast<float>(m));
  }
}

void unpack_q4_k(const std::byte* block, std::byte* codes, float* scale, float* min) {
  unpack_k_scales(block, scale, min);
  const std::byte* q = block + 16;
  for (int part = 0; part < 4; ++part, q += 32, codes += 64) {
    for (int i = 0; i < 32; ++i) {
      codes[i] = q[i] & std::byte{15};
      codes[i + 32] = q[i] >> 4;
    }
  }
}

void unpack_q5_k(const std::byte* block, std::byte* codes, float* scale, float* min) {
  unpack_k_scales(block, scale, min);
  const std::byte* high = block + 16;
  const std::byte* q = block + 48;
  for (int part = 0; part < 4; ++part, q += 32, codes += 64) {
    for (int i = 0; i < 32; ++i) {
      const uint32_t bits = byte_at(high, i) >> (2 * part);
      codes[i] = (q[i] & std::byte{15}) | code(static_cast<int>((bits & 1u) << 4));
      codes[i + 32] = (q[i] >> 4) | code(static_cast<int>((bits & 2u) << 3));
    }
  }
}

// x = d sc q with q in -32..31 and 16 scales.
void unpack_q6_k(const std::byte* block, std::byte* codes, float* scale, float*) {
  const std::byte* low = block;
  const std::byte* high = block + 128;
  const std::byte* s = block + 192;
  const float d = load_half(block + 208);
  for (int j = 0; j < 16; ++j) scale[j] = d * static_cast<float>(load<int8_t>(s + j));
  for (int half = 0; half < 2; ++half, low += 64, high += 32, codes += 128) {
    for (int i = 0; i < 32; ++i) {
      const uint32_t h = byte_at(high, i);
      const uint32_t a = byte_at(low, i);
      const uint32_t b = byte_at(low, i + 32);
      codes[i] = code(static_cast<int>((a & 15u) | (h & 3u) << 4) - 32);
      codes[i + 32] = code(static_cast<int>((b & 15u) | (h >> 2 & 3u) << 4) - 32);
      codes[i + 64] = code(static_cast<int>((a >> 4) | (h >> 4 & 3u) << 4) - 32);
      codes[i + 96] = code(static_cast<int>((b >> 4) | (h >> 6) << 4) - 32);
    }
  }
}

constexpr GgufBlock kBlocks[] = {
    {StorageType::kQ4_0, Codes::kU4, 32, true, unpack_q4_0},
    {StorageType::kQ4_1, Codes::kU4, 32, true, unpack_q4_1},
    {StorageType::kQ5_0, Codes::kI8, 32, false, unpack_q5_0},
    {StorageType::kQ5_1, Codes::kI8, 32, true, unpack_q5_1},
    {StorageType::kQ8_0, Codes::kI8, 32, false, unpack_q8_0},
    {StorageType::kQ4_K, Codes::kU4, 32, true, unpack_q4_k},
    {StorageType::kQ5_K, Codes::kI8, 32, true, unpack_q5_k},
    {StorageType::kQ6_K, Codes::kI8, 16, false, unpack_q6_k},
};

}  // namespace

const GgufBlock* find_gguf_block(StorageType type) {
  for (const GgufBlock& block : kBlocks) {
    if (block.type == type) return &block;
  }
  return nullptr;
}

}  // namespace whippet
