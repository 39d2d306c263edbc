// The element and block types that GGUF files number (ggml.h). Used by gguf.
#pragma once

#include <cstdint>

#include "model/checkpoint.h"

namespace whippet {

struct GgmlType {
  uint32_t id;
  const char* name;
  StorageType type;  // kOther: known by size only, nothing here decodes it
  BlockSize block;
};

// nullptr for a number that ggml does not define (yet).
const GgmlType* find_ggml_type(uint32_t id);

}  // namespace whippet
