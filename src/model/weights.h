// A loaded model's weights, packed for one backend. Move-only; the Decoder reads them.
#pragma once

#include <vector>

#include "backend/linear_weight.h"
#include "tensor/buffer.h"

namespace whippet {

// One matrix product of the decoder. Weights that read the same input (q|k|v, gate|up) are one part where
// their format agrees, else several parts that write neighbouring columns.
struct Projection {
  std::vector<LinearWeight> parts;
  int32_t out() const {
    int32_t sum = 0;
    for (const LinearWeight& part : parts) sum += part.out;
    return sum;
  }
};

struct LayerWeights {
  Buffer attention_norm;  // [hidden] fp32
  Projection qkv;         // [q_size + 2 * kv_size, hidden]
  Buffer q_norm, k_norm;  // [head_dim] fp32; empty without QK norm
  Projection o;           // [hidden, q_size]
  Buffer mlp_norm;        // [hidden] fp32
  Projection gate_up;     // [2 * intermediate, hidden]
  Projection down;        // [hidden, intermediate]
};

struct Weights {
  LinearWeight embedding;  // [vocab, hidden]; also the head when tied
  LinearWeight head;       // [vocab, hidden]; out == 0 when tied
  Buffer final_norm;       // [hidden] fp32
  std::vector<LayerWeights> layers;

  const LinearWeight& output() const { return head.out > 0 ? head : embedding; }
  // Embedding, head where there is one, then each layer's parts: the order in which they are loaded.
  std::vector<const LinearWeight*> linears() const;
  // What one decode step reads of them, in bytes.
  size_t bytes_per_step() const;
  // What they take on the device, in bytes.
  size_t bytes() const;
};

}  // namespace whippet
