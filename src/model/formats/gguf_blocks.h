// GGUF's block types unpacked to one code a byte, with value = code * scale + min exactly as ggml computes it
// in fp32. Layouts: ggml-org/ggml, src/ggml-common.h. Used by formats/gguf.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/linear_weight.h"
#include "model/checkpoint.h"

namespace whippet {

struct GgufBlock {
  StorageType type;
  CanonicalLinear::Codes codes;
  int32_t group;  // codes that share a scale; divides the block
  bool has_min;
  // One block: codes [elements], scale and min [elements / group]. `block` may be unaligned.
  void (*unpack)(const std::byte* block, std::byte* codes, float* scale, float* min);
};

// nullptr for a type that is no block type here.
const GgufBlock* find_gguf_block(StorageType type);

}  // namespace whippet
