#include "model/families/common.h"

namespace whippet {
namespace {

constexpr const char* kArchitectures[] = {"InternLM2ForCausalLM", "internlm2"};

Result<ModelSpec> read_spec(const nlohmann::json& json) {
  ConfigReader config(json, "config.json");
  ModelSpec spec = read_common(config, "internlm2");
  spec.qkv_bias = config.flag_or("bias", false);
  spec.o_bias = spec.qkv_bias;
  WH_TRY(config.status());
  return spec;
}

constexpr TensorNames kNames = {
    .embedding = "model.tok_embeddings",
    .final_norm = "model.norm",
    .head = "output",
    .layer = "model.layers.{}.",
    .attention_norm = "attention_norm",
    .q = nullptr,
    .k = nullptr,
    .v = nullptr,
    .packed_qkv = "attention.wqkv",
    .q_norm = nullptr,
    .k_norm = nullptr,
    .o = "attention.wo",
    .mlp_norm = "ffn_norm",
    .gate = "feed_forward.w1",
    .up = "feed_forward.w3",
    .down = "feed_forward.w2",
};

}  // namespace

Family internlm2_family() { return {"internlm2", kArchitectures, read_spec, kNames, true}; }

}  // namespace whippet
