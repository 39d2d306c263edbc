// What a model is: sizes and switches, read from a checkpoint's config by its family. A model is data: one
// Decoder runs every ModelSpec.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace whippet {

enum class RopeScaling : uint8_t { kNone, kLinear, kLlama3, kDynamicNtk, kFactors };

constexpr int32_t kMaxPosition = 1 << 24;  // the longest context that a config may claim

struct RopeSpec {
  float theta = 10000;
  RopeScaling scaling = RopeScaling::kNone;
  float factor = 1;
  float low_freq_factor = 1;   // llama3
  float high_freq_factor = 4;  // llama3
  int32_t original_max_position = 0;
  std::vector<float> factors = {};  // [head_dim / 2] divide the frequencies (GGUF's rope_freqs)
};

struct ModelSpec {
  std::string family;        // "qwen2"
  std::string architecture;  // as the checkpoint spells it: "Qwen2ForCausalLM" or GGUF's "qwen2"
  int32_t vocab_size = 0;    // rows of the embedding, padding included
  int32_t hidden_size = 0;
  int32_t num_layers = 0;
  int32_t num_q_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t intermediate_size = 0;
  int32_t max_position = 0;  // longest sequence it was trained for
  float rms_eps = 1e-6f;
  bool tied_embedding = false;
  std::string dtype;  // what the config says the weights are stored in, may be empty: "bfloat16"
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
  RopeSpec rope;
  std::vector<int32_t> window_of_layer;  // [num_layers] sliding window, 0: full attention
  std::vector<int32_t> eos_ids;          // what the config names
  int32_t bos_id = -1;

  int32_t q_size() const { return num_q_heads * head_dim; }
  int32_t kv_size() const { return num_kv_heads * head_dim; }
  int64_t num_parameters() const;
  // Bytes of K and V of one token over all layers, kept in this type.
  int64_t kv_bytes_per_token(DType kv_type) const;
};

// RoPE frequencies [head_dim / 2] for a sequence that will have up to `length` tokens. Only dynamic NTK
// depends on the length (beyond the trained one), and it is fixed per sequence, so that cached keys stay
// valid. Sources: Su et al. 2021; transformers' modeling_rope_utils for llama3 and dynamic scaling.
std::vector<float> rope_frequencies(const ModelSpec& spec, int32_t length);

}  // namespace whippet
