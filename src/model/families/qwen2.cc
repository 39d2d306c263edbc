#include "model/families/common.h"

namespace whippet {
namespace {

constexpr const char* kArchitectures[] = {"Qwen2ForCausalLM", "qwen2"};

Result<ModelSpec> read_spec(const nlohmann::json& json) {
  ConfigReader config(json, "config.json");
  ModelSpec spec = read_common(config, "qwen2");
  spec.qkv_bias = true;
  read_qwen_windows(config, spec);
  WH_TRY(config.status());
  return spec;
}

}  // namespace

Family qwen2_family() { return {"qwen2", kArchitectures, read_spec, llama_names(), false}; }

}  // namespace whippet
