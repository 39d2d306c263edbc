#include "api/tiny_model.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/safetensors.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The letters that byte-level BPE gives to the 256 bytes: printable ones their own, the others from U+0100
// on.
json byte_vocabulary() {
  json vocabulary = json::object();
  int next = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int code = printable ? byte : 256 + next++;
    std::string letter;
    if (code >= 128) letter += static_cast<char>(0xC0 | (code >> 6));
    letter += static_cast<char>(code >= 128 ? 0x80 | (code & 63) : code);
    vocabulary[letter] = byte;
  }
  return vocabulary;
}

json tokenizer_json() {
  json added = json::array();
  int id = 256;
  for (const char* text : {"<|im_start|>", "<|im_end|>"})
    added.push_back({{"id", id++},
                     {"content", text},
                     {"special", true},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false}});
  const json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"vocab", byte_vocabulary()},
            {"merges", json::array()}}}};
}

constexpr int kVocab = 258, kHidden = 32, kHeads = 4, kKvHeads = 2, kHeadDim = 8, kIntermediate = 48,
              kLayers = 2;

std::vector<std::pair<std::string, std::vector<int64_t>>> tensor_shapes() {
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes = {
      {"model.embed_tokens.weight", {kVocab, kHidden}}, {"model.norm.weight", {kHidden}}};
  for (int i = 0; i < kLayers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    shapes.insert(shapes.end(), {{layer + "input_layernorm.weight", {kHidden}},
                                 {layer + "post_attention_layernorm.weight", {kHidden}},
                                 {layer + "self_attn.q_proj.weight", {kHeads * kHeadDim, kHidden}},
                                 {layer + "self_attn.k_proj.weight", {kKvHeads * kHeadDim, kHidden}},
                                 {layer + "self_attn.v_proj.weight", {kKvHeads * kHeadDim, kHidden}},
                                 {layer + "self_attn.o_proj.weight", {kHidden, kHeads * kHeadDim}},
                                 {layer + "mlp.gate_proj.weight", {kIntermediate, kHidden}},
                                 {layer + "mlp.up_proj.weight", {kIntermediate, kHidden}},
                                 {layer + "mlp.down_proj.weight", {kHidden, kIntermediate}}});
  }
  return shapes;
}

void write_weights(const fs::path& path) {
  std::mt19937 random(7);
  std::normal_distribution<float> draw(0, 0.2f);
  std::vector<std::vector<float>> values;
  std::vector<TensorView> tensors;
  for (const auto& [name, shape] : tensor_shapes()) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    std::vector<float>& numbers = values.emplace_back(static_cast<size_t>(count));
    for (float& number : numbers) number = shape.size() == 1 ? 1 : draw(random);
    TensorView tensor;
    tensor.name = name;
    tensor.shape = shape;
    tensor.data = std::as_bytes(std::span(numbers));
    tensors.push_back(std::move(tensor));
  }
  const Status written = write_safetensors(path, tensors);
  ASSERT_TRUE(written.ok()) << written.error().message;
}

}  // namespace

void write_tiny_model(const TestFolder& folder, int max_position) {
  const json config = {{"architectures", {"LlamaForCausalLM"}},
                       {"model_type", "llama"},
                       {"vocab_size", kVocab},
                       {"hidden_size", kHidden},
                       {"num_hidden_layers", kLayers},
                       {"num_attention_heads", kHeads},
                       {"num_key_value_heads", kKvHeads},
                       {"intermediate_size", kIntermediate},
                       {"max_position_embeddings", max_position},
                       {"rms_norm_eps", 1e-5},
                       {"rope_theta", 10000.0},
                       {"tie_word_embeddings", true},
                       {"hidden_act", "silu"},
                       {"bos_token_id", 256},
                       {"eos_token_id", 257}};
  folder.write("config.json", config.dump());
  folder.write("tokenizer.json", tokenizer_json().dump());
  folder.write("chat_template.jinja",
               "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
               "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}");
  write_weights(folder.path() / "model.safetensors");
}

}  // namespace whippet
