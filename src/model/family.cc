#include "model/family.h"

#include <algorithm>
#include <vector>

#include "model/families/common.h"

namespace whippet {
namespace {

const Family* family_of(std::string_view architecture) {
  for (const Family& family : families()) {
    for (const char* name : family.architectures) {
      if (architecture == name) return &family;
    }
  }
  return nullptr;
}

std::string known_architectures() {
  std::vector<std::string_view> names;
  for (const Family& family : families()) names.emplace_back(family.architectures.front());
  return fmt::format("{}", fmt::join(names, ", "));
}

// What the config says it is: its architectures, or its model_type where it names none.
std::vector<std::string> claimed(const nlohmann::json& config) {
  std::vector<std::string> names;
  if (!config.is_object()) return names;
  const auto list = config.find("architectures");
  if (list != config.end() && list->is_array()) {
    for (const nlohmann::json& name : *list) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
  }
  const auto type = config.find("model_type");
  if (names.empty() && type != config.end() && type->is_string()) names.push_back(type->get<std::string>());
  return names;
}

constexpr TensorNames kGgufNames = {
    .embedding = "token_embd",
    .final_norm = "output_norm",
    .head = "output",
    .layer = "blk.{}.",
    .attention_norm = "attn_norm",
    .q = "attn_q",
    .k = "attn_k",
    .v = "attn_v",
    .packed_qkv = nullptr,
    .q_norm = "attn_q_norm",
    .k_norm = "attn_k_norm",
    .o = "attn_output",
    .mlp_norm = "ffn_norm",
    .gate = "ffn_gate",
    .up = "ffn_up",
    .down = "ffn_down",
};

}  // namespace

std::span<const Family> families() {
  static const Family list[] = {llama_family(), qwen2_family(), qwen3_family(), internlm2_family()};
  return list;
}

const TensorNames& gguf_tensor_names() { return kGgufNames; }

Result<const Family*> find_family(const nlohmann::json& config) {
  const std::vector<std::string> names = claimed(config);
  for (const std::string& name : names) {
    if (const Family* family = family_of(name)) return family;
  }
  if (names.empty()) {
    return make_error(Code::kCorrupt, "config.json names neither architectures nor model_type");
  }
  return make_error(Code::kUnsupported, "the architecture {} is not implemented; these are: {}",
                    fmt::join(names, ", "), known_architectures());
}

}  // namespace whippet
