#include "cli/bench_shape.h"

#include <cstring>
#include <random>
#include <utility>

namespace whippet {
namespace {

using Codes = CanonicalLinear::Codes;

struct NamedShape {
  const char* name;
  const char* family;
  int32_t vocab, hidden, layers, q_heads, kv_heads, head_dim, intermediate;
  bool tied, qkv_bias;
};

constexpr NamedShape kShapes[] = {
    {"smollm2-135m", "llama", 49152, 576, 30, 9, 3, 64, 1536, true, false},
    {"qwen2.5-0.5b", "qwen2", 151936, 896, 24, 14, 2, 64, 4864, true, true},
    {"llama-3.2-1b", "llama", 128256, 2048, 16, 32, 8, 64, 8192, true, false},
    {"internlm2-1.8b", "internlm2", 92544, 2048, 24, 16, 8, 128, 8192, false, false},
};

// Values of some thousandth to some hundredth, so that a forward pass neither dies out nor overflows.
CanonicalLinear random_linear(int32_t out, int32_t in, const ShapeForm& form, bool bias) {
  std::mt19937_64 random(static_cast<uint64_t>(out) * 31 + static_cast<uint64_t>(in));
  CanonicalLinear w;
  w.codes_type = form.codes;
  w.out = out;
  w.in = in;
  w.group = w.dense() ? 0 : form.group;
  const size_t elements = static_cast<size_t>(out) * static_cast<size_t>(in);
  const size_t width = form.codes == Codes::kF32 ? 4 : w.dense() ? 2 : 1;
  w.storage = Buffer::host(elements * width);
  w.codes = {w.storage.as<std::byte>(), elements * width};
  for (size_t i = 0; i < elements; ++i) {
    const uint64_t drawn = random();
    const float value = (static_cast<float>(drawn % 2048) - 1023.5f) * 0x1p-15f;
    auto* at = w.storage.as<std::byte>() + i * width;
    if (form.codes == Codes::kF32) {
      std::memcpy(at, &value, sizeof(value));
    } else if (w.dense()) {
      const uint16_t half = form.codes == Codes::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
      std::memcpy(at, &half, sizeof(half));
    } else {
      *at = static_cast<std::byte>(form.codes == Codes::kU4 ? drawn % 16 : drawn % 255 + 129);
    }
  }
  if (bias) w.bias.assign(static_cast<size_t>(out), 0.0f);
  if (w.dense()) return w;
  const size_t groups = static_cast<size_t>(out) * static_cast<size_t>(w.num_groups());
  const float scale = form.codes == Codes::kU4 ? 0x1p-8f : 0x1p-12f;
  w.scale.assign(groups, scale);
  if (form.codes == Codes::kU4)
    for (size_t i = 0; i < groups; ++i)
      w.min.push_back(form.symmetric ? -8 * scale : (-7.5f - 0.25f * static_cast<float>(i % 3)) * scale);
  return w;
}

Buffer ones(Backend& backend, int32_t size) {
  const std::vector<float> values(static_cast<size_t>(size), 1.0f);
  Buffer buffer = backend.allocate(values.size() * sizeof(float));
  backend.copy_to_device(buffer.as<void>(), values.data(), values.size() * sizeof(float));
  return buffer;
}

}  // namespace

Result<ShapeForm> parse_shape_form(const std::string& dtype, const std::string& quantization, int32_t group,
                                   bool minima) {
  if (quantization.empty() || quantization == "none") {
    if (dtype == "float32") return ShapeForm{.codes = Codes::kF32};
    if (dtype == "float16") return ShapeForm{.codes = Codes::kF16};
    return ShapeForm{.codes = Codes::kBF16};
  }
  if (quantization != "int8" && quantization != "int4")
    return make_error(Code::kInvalidArgument, "quantization '{}' of a shape: expected none, int8 or int4",
                      quantization);
  return ShapeForm{
      .codes = quantization == "int8" ? Codes::kI8 : Codes::kU4, .group = group, .symmetric = !minima};
}

Result<ModelSpec> find_shape(std::string_view name) {
  std::string known;
  for (const NamedShape& shape : kShapes) {
    known += (known.empty() ? "" : ", ") + std::string(shape.name);
    if (name != shape.name) continue;
    ModelSpec spec;
    spec.family = shape.family;
    spec.vocab_size = shape.vocab;
    spec.hidden_size = shape.hidden;
    spec.num_layers = shape.layers;
    spec.num_q_heads = shape.q_heads;
    spec.num_kv_heads = shape.kv_heads;
    spec.head_dim = shape.head_dim;
    spec.intermediate_size = shape.intermediate;
    spec.max_position = 32768;
    spec.tied_embedding = shape.tied;
    spec.qkv_bias = shape.qkv_bias;
    spec.window_of_layer.assign(static_cast<size_t>(shape.layers), 0);
    return spec;
  }
  return make_error(Code::kInvalidArgument, "no shape '{}': there are {}", name, known);
}

Result<Model> make_shape(const ModelSpec& spec, const ShapeForm& body, const ShapeForm& head,
                         Backend& backend) {
  Model model;
  model.spec = spec;
  const auto linear = [&](int32_t out, int32_t in, const ShapeForm& form, bool bias) {
    return random_linear(out, in, form, bias);
  };
  const CanonicalLinear table = linear(spec.vocab_size, spec.hidden_size, head, false);
  WH_ASSIGN(model.weights.embedding, backend.pack(table, ComputeType::kAuto));
  if (!spec.tied_embedding) {
    WH_ASSIGN(model.weights.head, backend.pack(table, ComputeType::kAuto));
  }
  model.weights.final_norm = ones(backend, spec.hidden_size);
  const CanonicalLinear qkv =
      linear(spec.q_size() + 2 * spec.kv_size(), spec.hidden_size, body, spec.qkv_bias);
  const CanonicalLinear o = linear(spec.hidden_size, spec.q_size(), body, false);
  const CanonicalLinear gate_up = linear(2 * spec.intermediate_size, spec.hidden_size, body, false);
  const CanonicalLinear down = linear(spec.hidden_size, spec.intermediate_size, body, false);
  for (int32_t i = 0; i < spec.num_layers; ++i) {
    LayerWeights layer;
    layer.attention_norm = ones(backend, spec.hidden_size);
    layer.mlp_norm = ones(backend, spec.hidden_size);
    const auto add = [&](const CanonicalLinear& from, Projection& to) -> Status {
      WH_ASSIGN(LinearWeight packed, backend.pack(from, ComputeType::kAuto));
      to.parts.push_back(std::move(packed));
      return {};
    };
    WH_TRY(add(qkv, layer.qkv));
    WH_TRY(add(o, layer.o));
    WH_TRY(add(gate_up, layer.gate_up));
    WH_TRY(add(down, layer.down));
    model.weights.layers.push_back(std::move(layer));
  }
  return model;
}

namespace {

double layer_operations(const ModelSpec& spec) {
  const double hidden = spec.hidden_size;
  return 2 * hidden * (2.0 * spec.q_size() + 2.0 * spec.kv_size() + 3.0 * spec.intermediate_size);
}
double head_operations(const ModelSpec& spec) { return 2.0 * spec.hidden_size * spec.vocab_size; }

// All layers, of the first `length` tokens of a sequence.
double rows_operations(const ModelSpec& spec, int32_t length) {
  const double pairs = 0.5 * length * (length + 1.0);  // of a query and a key that it sees
  return (layer_operations(spec) * length + 4 * pairs * spec.q_size()) * spec.num_layers;
}

}  // namespace

double token_operations(const ModelSpec& spec) {
  return layer_operations(spec) * spec.num_layers + head_operations(spec);
}

double prompt_operations(const ModelSpec& spec, int32_t length) {
  return rows_operations(spec, length) + head_operations(spec);
}

double request_operations(const ModelSpec& spec, int32_t cached, int32_t prompt_len, int32_t output_len) {
  return rows_operations(spec, prompt_len + output_len - 1) - rows_operations(spec, cached) +
         head_operations(spec) * output_len;
}

}  // namespace whippet
