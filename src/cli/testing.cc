#include "cli/testing.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include "model/safetensors.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> environment_of(const fs::path& home, const CommandInput& input) {
  std::map<std::string, std::string> variables = {{"HOME", home.string()},
                                                  {"XDG_CACHE_HOME", (home / "cache").string()},
                                                  {"XDG_STATE_HOME", (home / "state").string()},
                                                  {"HF_HOME", (home / "hf").string()},
                                                  {"HF_HUB_OFFLINE", "1"},
                                                  {"PATH", "/usr/bin:/bin"},
                                                  {"TMPDIR", home.string()}};
  for (const auto& [name, value] : input.environment) variables[name] = value;
  std::vector<std::string> result;
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

void redirect(int fd, const fs::path& path, int flags) {
  const int opened = ::open(path.c_str(), flags, 0600);
  if (opened < 0 || ::dup2(opened, fd) != fd) ::_exit(127);
  ::close(opened);
}

// The letters that byte-level BPE gives to the 256 bytes: printable ones their own, the others from U+0100
// on.
json byte_vocabulary() {
  json vocabulary = json::object();
  int next = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int code = printable ? byte : 256 + next++;
    std::string letter(1, static_cast<char>(code));
    if (code >= 128) letter = {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 63))};
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

std::vector<json> CommandResult::json_lines() const {
  std::vector<json> lines;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(json::parse(line, nullptr, false));
    EXPECT_FALSE(lines.back().is_discarded()) << line;
  }
  return lines;
}

CommandResult run_whippet(const std::vector<std::string>& args, const CommandInput& input) {
  const TestFolder folder;
  const fs::path in = folder.write("in", input.text);
  const fs::path out = input.out_path.empty() ? folder.path() / "out" : fs::path(input.out_path);
  std::vector<std::string> words = {"whippet"};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<std::string> variables = environment_of(folder.path(), input);
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  const pid_t child = ::fork();
  if (child == 0) {
    redirect(STDIN_FILENO, in, O_RDONLY);
    redirect(STDERR_FILENO, folder.path() / "err", O_WRONLY | O_CREAT);
    redirect(STDOUT_FILENO, out, O_WRONLY | O_CREAT);
    if (input.close_out) ::close(STDOUT_FILENO);
    ::execve(WHIPPET_BINARY, argv.data(), envp.data());
    ::_exit(127);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  CommandResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (input.out_path.empty()) result.out = contents(out);
  result.err = contents(folder.path() / "err");
  return result;
}

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
