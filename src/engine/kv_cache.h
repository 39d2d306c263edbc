// The memory behind the block numbers: K and V of every layer, taken from the backend once.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "engine/limits.h"
#include "model/spec.h"
#include "tensor/buffer.h"

namespace whippet {

class KvCache {
 public:
  KvCache(const ModelSpec& spec, const CoreLimits& limits, Backend& backend);

  const std::vector<KvCacheView>& layers() const { return layers_; }  // [num_layers]

 private:
  std::vector<Buffer> memory_;  // of all layers
  std::vector<KvCacheView> layers_;
};

}  // namespace whippet
