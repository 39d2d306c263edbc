#include "engine/kv_cache.h"

namespace whippet {

KvCache::KvCache(const ModelSpec& spec, const CoreLimits& limits, Backend& backend) {
  const DType dtype = limits.kv_type;
  const size_t bytes = static_cast<size_t>(limits.num_blocks) * static_cast<size_t>(limits.block_size) *
                       static_cast<size_t>(spec.kv_size()) * dtype_size(dtype);
  for (int32_t layer = 0; layer < spec.num_layers; ++layer) {
    const KvCacheView view{.k = memory_.emplace_back(backend.allocate(bytes)).as<void>(),
                           .v = memory_.emplace_back(backend.allocate(bytes)).as<void>(),
                           .dtype = dtype,
                           .num_blocks = limits.num_blocks,
                           .block_size = limits.block_size,
                           .num_kv_heads = spec.num_kv_heads,
                           .head_dim = spec.head_dim};
    layers_.push_back(view);
  }
}

}  // namespace whippet
