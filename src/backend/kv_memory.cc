#include "backend/kv_memory.h"

namespace whippet {

KvCacheView allocate_kv(Backend& backend, KvCacheView shape, std::vector<Buffer>& memory) {
  const size_t rows = static_cast<size_t>(shape.num_blocks) * static_cast<size_t>(shape.num_kv_heads) *
                      static_cast<size_t>(shape.block_size);
  const size_t bytes = rows * static_cast<size_t>(shape.head_dim) * dtype_size(shape.dtype);
  for (void** elements : {&shape.k, &shape.v})
    *elements = memory.emplace_back(backend.allocate(bytes)).as<void>();
  if (shape.dtype != DType::kI8) return shape;
  for (float** scales : {&shape.k_scales, &shape.v_scales})
    *scales = memory.emplace_back(backend.allocate(rows * sizeof(float))).as<float>();
  return shape;
}

}  // namespace whippet
