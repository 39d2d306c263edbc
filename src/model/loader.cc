#include "model/loader.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/progress.h"
#include "model/family.h"
#include "model/formats/format.h"
#include "model/linear_loader.h"
#include "model/row_order.h"

namespace whippet {
namespace {

const TensorNames& names_of(const Checkpoint& checkpoint, const Family& family) {
  return checkpoint.container == Checkpoint::Container::kGguf ? gguf_tensor_names() : family.names;
}

std::optional<CodeGrid> grid_of(OnLoad on_load) {
  if (on_load == OnLoad::kInt8) return kTableGrid;
  if (on_load == OnLoad::kInt4) return CodeGrid{.bits = 4, .group = 64, .symmetric = false};
  return std::nullopt;
}

class ModelLoader {
 public:
  ModelLoader(const Checkpoint& checkpoint, const Family& family, const ModelSpec& spec, Backend& backend,
              ComputeType compute, OnLoad on_load)
      : checkpoint_(checkpoint),
        names_(names_of(checkpoint, family)),
        spec_(spec),
        backend_(backend),
        linears_(checkpoint, backend, compute, grid_of(on_load)) {
    if (checkpoint.container == Checkpoint::Container::kGguf && family.gguf_permutes_qk) {
      q_rows_ = interleaved_rows(spec.num_q_heads, spec.head_dim);
      k_rows_ = interleaved_rows(spec.num_kv_heads, spec.head_dim);
    }
  }

  Result<Weights> load() {
    Weights weights;
    Progress progress("loading", static_cast<uint64_t>(spec_.num_layers) + 1, Progress::Unit::kCount);
    const auto table = [&](const char* name) {
      return linears_.load_table({.layer = name, .out = spec_.vocab_size, .in = spec_.hidden_size});
    };
    WH_ASSIGN(weights.embedding, table(names_.embedding));
    if (!spec_.tied_embedding) {
      WH_ASSIGN(weights.head, table(names_.head));
    }
    WH_ASSIGN(weights.final_norm, norm(names_.final_norm, spec_.hidden_size));
    weights.layers.reserve(static_cast<size_t>(spec_.num_layers));
    for (int32_t i = 0; i < spec_.num_layers; ++i) {
      progress.add(1);
      WH_ASSIGN(LayerWeights layer, load_layer(fmt::format(fmt::runtime(names_.layer), i)));
      weights.layers.push_back(std::move(layer));
    }
    log_unused();
    return weights;
  }

 private:
  Result<LayerWeights> load_layer(const std::string& prefix) {
    const int32_t hidden = spec_.hidden_size;
    const int32_t mlp = spec_.intermediate_size;
    LayerWeights layer;
    WH_ASSIGN(layer.attention_norm, norm(prefix + names_.attention_norm, hidden));
    WH_ASSIGN(layer.qkv, linears_.load_projection(qkv_sources(prefix)));
    if (spec_.qk_norm) {
      WH_ASSIGN(layer.q_norm, norm(prefix + names_.q_norm, spec_.head_dim));
      WH_ASSIGN(layer.k_norm, norm(prefix + names_.k_norm, spec_.head_dim));
    }
    WH_ASSIGN(layer.o,
              linears_.load_projection(
                  {{.layer = prefix + names_.o, .out = hidden, .in = spec_.q_size(), .bias = spec_.o_bias}}));
    WH_ASSIGN(layer.mlp_norm, norm(prefix + names_.mlp_norm, hidden));
    WH_ASSIGN(layer.gate_up,
              linears_.load_projection(
                  {{.layer = prefix + names_.gate, .out = mlp, .in = hidden, .bias = spec_.mlp_bias},
                   {.layer = prefix + names_.up, .out = mlp, .in = hidden, .bias = spec_.mlp_bias}}));
    WH_ASSIGN(layer.down,
              linears_.load_projection(
                  {{.layer = prefix + names_.down, .out = hidden, .in = mlp, .bias = spec_.mlp_bias}}));
    return layer;
  }

  std::vector<LinearSource> qkv_sources(const std::string& prefix) const {
    const int32_t hidden = spec_.hidden_size;
    const bool bias = spec_.qkv_bias;
    if (names_.packed_qkv != nullptr) {
      return {{.layer = prefix + names_.packed_qkv,
               .out = spec_.q_size() + 2 * spec_.kv_size(),
               .in = hidden,
               .rows = packed_qkv_rows(spec_.num_q_heads, spec_.num_kv_heads, spec_.head_dim),
               .bias = bias}};
    }
    return {{.layer = prefix + names_.q, .out = spec_.q_size(), .in = hidden, .rows = q_rows_, .bias = bias},
            {.layer = prefix + names_.k, .out = spec_.kv_size(), .in = hidden, .rows = k_rows_, .bias = bias},
            {.layer = prefix + names_.v, .out = spec_.kv_size(), .in = hidden, .bias = bias}};
  }

  Result<Buffer> norm(const std::string& name, int32_t size) {
    WH_ASSIGN(const std::vector<float> values, linears_.load_vector(name + ".weight", size));
    Buffer buffer = backend_.allocate(values.size() * sizeof(float));
    backend_.copy_to_device(buffer.as<void>(), values.data(), values.size() * sizeof(float));
    return buffer;
  }

  // Rotary tables of old checkpoints, heads of tied re-saves and the like: worth a word, not an error.
  void log_unused() const {
    if (!log_enabled(LogLevel::kDebug)) return;
    for (const auto& [name, tensor] : checkpoint_.tensors) {
      if (!linears_.used(name) && name != "rope_freqs.weight") log_debug("tensor {} is not used", name);
    }
  }

  const Checkpoint& checkpoint_;
  const TensorNames& names_;
  const ModelSpec& spec_;
  Backend& backend_;
  LinearLoader linears_;
  std::vector<int32_t> q_rows_;  // where each row of q lies in the file; empty: in its place
  std::vector<int32_t> k_rows_;
};

}  // namespace

Result<ModelSpec> read_spec(const Checkpoint& checkpoint) {
  WH_ASSIGN(const Family* family, find_family(checkpoint.config));
  WH_ASSIGN(ModelSpec spec, family->spec(checkpoint.config));
  if (!stores_layer(checkpoint, names_of(checkpoint, *family).head)) spec.tied_embedding = true;
  if (checkpoint.find("rope_freqs.weight") != nullptr &&
      checkpoint.container == Checkpoint::Container::kGguf) {
    WH_ASSIGN(spec.rope.factors, read_vector(checkpoint, "rope_freqs.weight", spec.head_dim / 2));
    spec.rope.scaling = RopeScaling::kFactors;
    for (const float factor : spec.rope.factors) {
      if (!(factor > 0))
        return make_error(Code::kCorrupt, "tensor rope_freqs.weight: factor {} is not positive", factor);
    }
  }
  return spec;
}

Result<Model> load_model(const Checkpoint& checkpoint, Backend& backend, ComputeType compute,
                         OnLoad on_load) {
  WH_ASSIGN(const Family* family, find_family(checkpoint.config));
  WH_TRY(check_quantization(checkpoint));
  Model model;
  WH_ASSIGN(model.spec, read_spec(checkpoint));
  WH_ASSIGN(model.weights, ModelLoader(checkpoint, *family, model.spec, backend, compute, on_load).load());
  return model;
}

}  // namespace whippet
