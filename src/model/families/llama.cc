#include "model/families/common.h"

namespace whippet {
namespace {

constexpr const char* kArchitectures[] = {"LlamaForCausalLM", "llama"};

Result<ModelSpec> read_spec(const nlohmann::json& json) {
  ConfigReader config(json, "config.json");
  ModelSpec spec = read_common(config, "llama");
  spec.qkv_bias = config.flag_or("attention_bias", false);
  spec.o_bias = spec.qkv_bias;
  spec.mlp_bias = config.flag_or("mlp_bias", false);
  WH_TRY(config.status());
  return spec;
}

}  // namespace

Family llama_family() { return {"llama", kArchitectures, read_spec, llama_names(), true}; }

}  // namespace whippet
