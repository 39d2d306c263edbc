#include "model/gguf_config.h"

#include <cstdint>
#include <string>
#include <vector>

#include "model/config_reader.h"

namespace whippet {
namespace {

constexpr int32_t kMaxInt = INT32_MAX;
constexpr size_t kMaxArchitecture = 64;

const TensorView* find_tensor(const GgufFile& file, std::string_view name) {
  for (const TensorView& tensor : file.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

class Translator {
 public:
  Translator(const GgufFile& file, std::string architecture)
      : file_(file),
        metadata_(file.metadata, "GGUF metadata"),
        architecture_(std::move(architecture)),
        prefix_(architecture_ + ".") {}

  Result<nlohmann::json> translate() {
    config_ = {{"architectures", {architecture_}}, {"model_type", architecture_}, {"hidden_act", "silu"}};
    config_["hidden_size"] = size("embedding_length");
    config_["num_hidden_layers"] = size("block_count");
    config_["num_attention_heads"] = size("attention.head_count");
    if (find("attention.head_count_kv")) config_["num_key_value_heads"] = size("attention.head_count_kv");
    config_["intermediate_size"] = size("feed_forward_length");
    config_["max_position_embeddings"] = size("context_length");
    config_["rms_norm_eps"] = metadata_.number(prefix_ + "attention.layer_norm_rms_epsilon", 0, 1);
    read_head_dim();
    read_vocabulary();
    read_rope();
    read_window();
    if (find("expert_count") && size("expert_count") > 0) {
      metadata_.fail(Code::kUnsupported, "{}expert_count: mixtures of experts are not implemented", prefix_);
    }
    WH_TRY(metadata_.status());
    return std::move(config_);
  }

 private:
  const nlohmann::json* find(const std::string& key) const { return metadata_.find(prefix_ + key); }

  // A size of the model. Some are lists with one entry a layer; all layers must agree.
  int32_t size(const std::string& key) {
    const std::string name = prefix_ + key;
    const nlohmann::json* value = metadata_.find(name);
    if (value == nullptr || !value->is_array() || value->empty()) return metadata_.integer(name, 0, kMaxInt);
    for (const nlohmann::json& element : *value) {
      if (element != value->front()) {
        metadata_.fail(Code::kUnsupported, "{} differs between layers, which is not implemented", name);
        return 0;
      }
    }
    const nlohmann::json scalar = {{name, value->front()}};
    ConfigReader reader(scalar, "GGUF metadata");
    const int32_t number = reader.integer(name, 0, kMaxInt);
    const Status status = reader.status();
    if (!status.ok()) metadata_.fail(status.error().code, "{}", status.error().message);
    return number;
  }

  void read_head_dim() {
    const int32_t heads = config_["num_attention_heads"];
    int32_t head_dim = heads > 0 ? config_["hidden_size"].get<int32_t>() / heads : 0;
    if (find("attention.key_length")) {
      head_dim = size("attention.key_length");
      config_["head_dim"] = head_dim;
    }
    for (const char* key : {"attention.value_length", "rope.dimension_count"}) {
      if (find(key) && size(key) != head_dim) {
        metadata_.fail(Code::kUnsupported, "{}{} is {}, and only the head size {} is implemented", prefix_,
                       key, size(key), head_dim);
      }
    }
  }

  void read_vocabulary() {
    const TensorView* embedding = find_tensor(file_, "token_embd.weight");
    if (embedding == nullptr || embedding->shape.size() != 2) {
      metadata_.fail(Code::kCorrupt, "the file has no tensor token_embd.weight with two dimensions");
      return;
    }
    config_["vocab_size"] = embedding->shape[0];
    config_["tie_word_embeddings"] = find_tensor(file_, "output.weight") == nullptr;
    std::vector<int32_t> eos = metadata_.ids("tokenizer.ggml.eos_token_id");
    for (const int32_t id : metadata_.ids("tokenizer.ggml.eot_token_id")) {
      if (eos.empty() || eos.front() != id) eos.push_back(id);
    }
    if (!eos.empty()) config_["eos_token_id"] = eos;
    const std::vector<int32_t> bos = metadata_.ids("tokenizer.ggml.bos_token_id");
    if (!bos.empty()) config_["bos_token_id"] = bos.front();
  }

  void read_rope() {
    config_["rope_theta"] = metadata_.number_or(prefix_ + "rope.freq_base", 10000, 1, 1e12);
    const std::string type = metadata_.text_or(prefix_ + "rope.scaling.type", "none");
    if (type == "none") return;
    config_["rope_scaling"] = {{"rope_type", type},
                               {"factor", metadata_.number(prefix_ + "rope.scaling.factor", 0, 1e6)}};
  }

  void read_window() {
    if (!find("attention.sliding_window")) return;
    const int32_t window = size("attention.sliding_window");
    const int32_t layers = config_["num_hidden_layers"];
    if (window == 0 || window >= config_["max_position_embeddings"].get<int32_t>()) return;
    if (static_cast<size_t>(layers) > file_.tensors.size()) return;  // refused later, for its missing tensors
    config_["sliding_window"] = window;
    config_["layer_types"] = std::vector<std::string>(static_cast<size_t>(layers), "sliding_attention");
  }

  const GgufFile& file_;
  ConfigReader metadata_;
  std::string architecture_;
  std::string prefix_;
  nlohmann::json config_;
};

}  // namespace

Result<nlohmann::json> gguf_config(const GgufFile& file) {
  ConfigReader metadata(file.metadata, "GGUF metadata");
  const std::string architecture = metadata.text_or("general.architecture", "");
  WH_TRY(metadata.status());
  if (architecture.empty() || architecture.size() > kMaxArchitecture) {
    return make_error(Code::kCorrupt, "GGUF metadata: general.architecture is missing or absurd");
  }
  return Translator(file, architecture).translate();
}

}  // namespace whippet
