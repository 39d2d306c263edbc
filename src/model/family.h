// The model families: each one small file in families/ that reads a config and names tensors. The list is
// explicit.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "model/spec.h"

namespace whippet {

// Spellings of one layer's tensors without the layer prefix and without ".weight" / ".bias".
struct TensorNames {
  const char* embedding;   // "model.embed_tokens"
  const char* final_norm;  // "model.norm"
  const char* head;        // "lm_head"
  const char* layer;       // "model.layers.{}."
  const char* attention_norm;
  const char* q;  // nullptr where qkv is packed
  const char* k;
  const char* v;
  const char* packed_qkv;  // InternLM2's wqkv: per KV group its query heads, then K, then V; else nullptr
  const char* q_norm;
  const char* k_norm;
  const char* o;
  const char* mlp_norm;
  const char* gate;
  const char* up;
  const char* down;
};

struct Family {
  const char* name;                            // "qwen2"
  std::span<const char* const> architectures;  // Hugging Face's and GGUF's spellings
  Result<ModelSpec> (*spec)(const nlohmann::json& config);
  TensorNames names;
  bool gguf_permutes_qk;  // GGUF files of this architecture hold q and k rows in interleaved RoPE order
};

std::span<const Family> families();
// How every architecture's tensors are called in a GGUF file.
const TensorNames& gguf_tensor_names();
// By config's "architectures" or "model_type"; kUnsupported lists what works.
Result<const Family*> find_family(const nlohmann::json& config);

}  // namespace whippet
