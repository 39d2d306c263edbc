#include "engine/kv_cache.h"

#include "backend/kv_memory.h"

namespace whippet {

KvCache::KvCache(const ModelSpec& spec, const CoreLimits& limits, Backend& backend) {
  KvCacheView shape;
  shape.dtype = limits.kv_type;
  shape.num_blocks = limits.num_blocks;
  shape.block_size = limits.block_size;
  shape.num_kv_heads = spec.num_kv_heads;
  shape.head_dim = spec.head_dim;
  for (int32_t layer = 0; layer < spec.num_layers; ++layer)
    layers_.push_back(allocate_kv(backend, shape, memory_));
}

}  // namespace whippet
