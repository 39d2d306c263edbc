#include "model/families/common.h"

#include <algorithm>
#include <string>

#include "model/families/rope_config.h"

namespace whippet {
namespace {

// Far above any model this engine is for, far below what overflows a size.
constexpr int32_t kMaxHidden = 1 << 16;
constexpr int32_t kMaxIntermediate = 1 << 20;
constexpr int32_t kMaxLayers = 1024;
constexpr int32_t kMaxHeads = 1024;
constexpr int32_t kMaxHeadDim = 1024;
constexpr int32_t kMaxVocab = 1 << 22;

std::string architecture(const ConfigReader& config) {
  const nlohmann::json* names = config.find("architectures");
  if (names != nullptr && names->is_array() && !names->empty() && names->front().is_string()) {
    return names->front().get<std::string>();
  }
  const nlohmann::json* type = config.find("model_type");
  return type != nullptr && type->is_string() ? type->get<std::string>() : "";
}

void read_sizes(ConfigReader& config, ModelSpec& spec) {
  spec.vocab_size = config.integer("vocab_size", 1, kMaxVocab);
  spec.hidden_size = config.integer("hidden_size", 1, kMaxHidden);
  spec.num_layers = config.integer("num_hidden_layers", 1, kMaxLayers);
  spec.intermediate_size = config.integer("intermediate_size", 1, kMaxIntermediate);
  spec.max_position = config.integer("max_position_embeddings", 1, kMaxPosition);
  spec.num_q_heads = config.integer("num_attention_heads", 1, kMaxHeads);
  spec.num_kv_heads = config.integer_or("num_key_value_heads", spec.num_q_heads, 1, spec.num_q_heads);
  if (spec.num_q_heads % spec.num_kv_heads != 0) {
    config.fail(Code::kCorrupt, "num_attention_heads {} is no multiple of num_key_value_heads {}",
                spec.num_q_heads, spec.num_kv_heads);
  }
  if (config.find("head_dim") != nullptr) {
    spec.head_dim = config.integer("head_dim", 2, kMaxHeadDim);
  } else if (spec.hidden_size % spec.num_q_heads == 0) {
    spec.head_dim = spec.hidden_size / spec.num_q_heads;
  } else {
    config.fail(Code::kCorrupt,
                "hidden_size {} is no multiple of num_attention_heads {} and head_dim is absent",
                spec.hidden_size, spec.num_q_heads);
  }
  if (spec.head_dim % 2 != 0 || spec.head_dim > kMaxHeadDim) {
    config.fail(Code::kCorrupt, "head_dim: expected an even number up to {}, found {}", kMaxHeadDim,
                spec.head_dim);
  }
}

// What would change the arithmetic and is not implemented must be off.
void refuse_variants(ConfigReader& config) {
  const std::string act = config.text_or("hidden_act", "silu");
  if (act != "silu" && act != "swish") {
    config.fail(Code::kUnsupported, "hidden_act '{}' is not implemented; silu is", act);
  }
  const double rotary = config.number_or("partial_rotary_factor", 1, 0, 1);
  if (rotary != 1) {
    config.fail(Code::kUnsupported, "partial_rotary_factor {} is not implemented; 1 is", rotary);
  }
  for (const char* key : {"rope_interleaved", "use_mrope"}) {
    if (config.flag_or(key, false)) config.fail(Code::kUnsupported, "{} is not implemented", key);
  }
}

void read_layer_types(ConfigReader& config, ModelSpec& spec) {
  const nlohmann::json* types = config.find("layer_types");
  if (types == nullptr) return;
  if (!types->is_array() || types->size() != static_cast<size_t>(spec.num_layers)) {
    config.fail(Code::kCorrupt, "layer_types: expected a list of {} (num_hidden_layers), found {}",
                spec.num_layers,
                types->is_array() ? fmt::format("{}", types->size()) : std::string(types->type_name()));
    return;
  }
  for (size_t i = 0; i < types->size(); ++i) {
    const std::string type = (*types)[i].is_string() ? (*types)[i].get<std::string>() : "";
    if (type == "sliding_attention") {
      spec.window_of_layer[i] = config.integer("sliding_window", 1, kMaxPosition);
    } else if (type != "full_attention") {
      config.fail(Code::kUnsupported,
                  "layer_types[{}] is '{}'; full_attention and sliding_attention are implemented", i, type);
    }
  }
}

void read_token_ids(ConfigReader& config, ModelSpec& spec) {
  const auto inside = [&](int32_t id) { return id < spec.vocab_size; };
  for (const int32_t id : config.ids("eos_token_id")) {
    if (inside(id)) spec.eos_ids.push_back(id);
  }
  const std::vector<int32_t> bos = config.ids("bos_token_id");
  if (!bos.empty() && inside(bos.front())) spec.bos_id = bos.front();
}

}  // namespace

ModelSpec read_common(ConfigReader& config, const char* family) {
  ModelSpec spec;
  spec.family = family;
  spec.architecture = architecture(config);
  read_sizes(config, spec);
  refuse_variants(config);
  spec.rms_eps = static_cast<float>(config.number_or("rms_norm_eps", 1e-6, 1e-12, 0.1));
  spec.tied_embedding = config.flag_or("tie_word_embeddings", false);
  spec.dtype = config.text_or("dtype", config.text_or("torch_dtype", ""));
  spec.rope = read_rope(config, spec);
  spec.window_of_layer.assign(static_cast<size_t>(spec.num_layers), 0);
  read_layer_types(config, spec);
  read_token_ids(config, spec);
  return spec;
}

void read_qwen_windows(ConfigReader& config, ModelSpec& spec) {
  if (config.find("layer_types") != nullptr || !config.flag_or("use_sliding_window", false) ||
      config.find("sliding_window") == nullptr) {
    return;
  }
  const int32_t window = config.integer("sliding_window", 1, kMaxPosition);
  const int32_t first = config.integer_or("max_window_layers", 28, 0, kMaxLayers);
  for (int32_t i = first; i < spec.num_layers; ++i) spec.window_of_layer[static_cast<size_t>(i)] = window;
}

TensorNames llama_names() {
  return {
      .embedding = "model.embed_tokens",
      .final_norm = "model.norm",
      .head = "lm_head",
      .layer = "model.layers.{}.",
      .attention_norm = "input_layernorm",
      .q = "self_attn.q_proj",
      .k = "self_attn.k_proj",
      .v = "self_attn.v_proj",
      .packed_qkv = nullptr,
      .q_norm = "self_attn.q_norm",
      .k_norm = "self_attn.k_norm",
      .o = "self_attn.o_proj",
      .mlp_norm = "post_attention_layernorm",
      .gate = "mlp.gate_proj",
      .up = "mlp.up_proj",
      .down = "mlp.down_proj",
  };
}

}  // namespace whippet
