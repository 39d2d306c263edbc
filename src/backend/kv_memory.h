// How much memory a KV cache takes, and taking it from a device. For whoever owns a cache: the engine,
// runners and benches.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/views.h"
#include "tensor/buffer.h"

namespace whippet {

// Bytes of K, or as many of V, of one token and KV head: int8 has a scale beside it.
constexpr int64_t kv_row_bytes(DType dtype, int32_t head_dim) {
  const int64_t elements = int64_t{head_dim} * static_cast<int64_t>(dtype_size(dtype));
  return elements + (dtype == DType::kI8 ? static_cast<int64_t>(sizeof(float)) : 0);
}

// The cache of one layer of this type and shape. Its zeroed memory is added to `memory` and must outlive it.
KvCacheView allocate_kv(Backend& backend, KvCacheView shape, std::vector<Buffer>& memory);

}  // namespace whippet
