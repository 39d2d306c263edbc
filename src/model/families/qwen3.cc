#include "model/families/common.h"

namespace whippet {
namespace {

constexpr const char* kArchitectures[] = {"Qwen3ForCausalLM", "qwen3"};

Result<ModelSpec> read_spec(const nlohmann::json& json) {
  ConfigReader config(json, "config.json");
  ModelSpec spec = read_common(config, "qwen3");
  spec.qk_norm = true;
  spec.qkv_bias = config.flag_or("attention_bias", false);
  spec.o_bias = spec.qkv_bias;
  read_qwen_windows(config, spec);
  WH_TRY(config.status());
  return spec;
}

}  // namespace

Family qwen3_family() { return {"qwen3", kArchitectures, read_spec, llama_names(), false}; }

}  // namespace whippet
