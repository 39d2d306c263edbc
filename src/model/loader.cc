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

// What each projection of a layer is made of.
LayerSources sources_of(const Checkpoint& checkpoint, const Family& family, const ModelSpec& spec,
                        int32_t layer) {
  const TensorNames& names = names_of(checkpoint, family);
  const std::string prefix = fmt::format(fmt::runtime(names.layer), layer);
  const int32_t hidden = spec.hidden_size, mlp = spec.intermediate_size;
  const auto source = [&](const char* name, int32_t out, int32_t in, bool bias) {
    return LinearSource{.layer = prefix + name, .out = out, .in = in, .bias = bias};
  };
  LayerSources sources;
  if (names.packed_qkv != nullptr) {
    sources.qkv = {source(names.packed_qkv, spec.q_size() + 2 * spec.kv_size(), hidden, spec.qkv_bias)};
    sources.qkv[0].rows = packed_qkv_rows(spec.num_q_heads, spec.num_kv_heads, spec.head_dim);
  } else {
    sources.qkv = {source(names.q, spec.q_size(), hidden, spec.qkv_bias),
                   source(names.k, spec.kv_size(), hidden, spec.qkv_bias),
                   source(names.v, spec.kv_size(), hidden, spec.qkv_bias)};
    if (checkpoint.container == Checkpoint::Container::kGguf && family.gguf_permutes_qk) {
      sources.qkv[0].rows = interleaved_rows(spec.num_q_heads, spec.head_dim);
      sources.qkv[1].rows = interleaved_rows(spec.num_kv_heads, spec.head_dim);
    }
  }
  sources.o = {source(names.o, hidden, spec.q_size(), spec.o_bias)};
  sources.gate_up = {source(names.gate, mlp, hidden, spec.mlp_bias),
                     source(names.up, mlp, hidden, spec.mlp_bias)};
  sources.down = {source(names.down, hidden, mlp, spec.mlp_bias)};
  return sources;
}

class ModelLoader {
 public:
  ModelLoader(const Checkpoint& checkpoint, const Family& family, const ModelSpec& spec, Backend& backend,
              ComputeType compute, OnLoad on_load, PackedCache* cache = nullptr)
      : checkpoint_(checkpoint),
        family_(family),
        names_(names_of(checkpoint, family)),
        spec_(spec),
        backend_(backend),
        linears_(checkpoint, backend, compute, grid_of(on_load), cache) {}

  Result<Weights> load() {
    Weights weights;
    Progress progress("loading", static_cast<uint64_t>(spec_.num_layers) + 1, Progress::Unit::kCount);
    WH_ASSIGN(weights.embedding, load_embedding());
    if (!spec_.tied_embedding) {
      WH_ASSIGN(weights.head, table(names_.head));
    }
    WH_ASSIGN(weights.final_norm, norm(names_.final_norm, spec_.hidden_size));
    weights.layers.reserve(static_cast<size_t>(spec_.num_layers));
    for (int32_t i = 0; i < spec_.num_layers; ++i) {
      progress.add(1);
      WH_ASSIGN(LayerWeights layer, load_layer(i));
      weights.layers.push_back(std::move(layer));
    }
    log_unused();
    return weights;
  }

  Result<LinearWeight> load_embedding() { return table(names_.embedding); }

  Result<LayerWeights> load_layer(int32_t index) {
    const std::string prefix = fmt::format(fmt::runtime(names_.layer), index);
    const LayerSources sources = sources_of(checkpoint_, family_, spec_, index);
    LayerWeights layer;
    WH_ASSIGN(layer.attention_norm, norm(prefix + names_.attention_norm, spec_.hidden_size));
    WH_ASSIGN(layer.qkv, linears_.load_projection(sources.qkv));
    if (spec_.qk_norm) {
      WH_ASSIGN(layer.q_norm, norm(prefix + names_.q_norm, spec_.head_dim));
      WH_ASSIGN(layer.k_norm, norm(prefix + names_.k_norm, spec_.head_dim));
    }
    WH_ASSIGN(layer.o, linears_.load_projection(sources.o));
    WH_ASSIGN(layer.mlp_norm, norm(prefix + names_.mlp_norm, spec_.hidden_size));
    WH_ASSIGN(layer.gate_up, linears_.load_projection(sources.gate_up));
    WH_ASSIGN(layer.down, linears_.load_projection(sources.down));
    return layer;
  }

 private:
  Result<LinearWeight> table(const char* name) {
    return linears_.load_table({.layer = name, .out = spec_.vocab_size, .in = spec_.hidden_size});
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
  const Family& family_;
  const TensorNames& names_;
  const ModelSpec& spec_;
  Backend& backend_;
  LinearLoader linears_;
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

Result<Model> load_model(const Checkpoint& checkpoint, Backend& backend, ComputeType compute, OnLoad on_load,
                         const PackedPlace& packed) {
  WH_ASSIGN(const Family* family, find_family(checkpoint.config));
  WH_TRY(check_quantization(checkpoint));
  Model model;
  WH_ASSIGN(model.spec, read_spec(checkpoint));
  PackedCache cache(
      packed, checkpoint, backend,
      fmt::format("compute {} rounded {}", static_cast<int>(compute), static_cast<int>(on_load)));
  WH_ASSIGN(model.weights,
            ModelLoader(checkpoint, *family, model.spec, backend, compute, on_load, &cache).load());
  cache.keep(model.weights.linears());
  return model;
}

Result<LayerSources> layer_sources(const Checkpoint& checkpoint, const ModelSpec& spec, int32_t layer) {
  WH_ASSIGN(const Family* family, find_family(checkpoint.config));
  return sources_of(checkpoint, *family, spec, layer);
}

Result<LayerWeights> load_layer(const Checkpoint& checkpoint, const ModelSpec& spec, int32_t layer,
                                Backend& backend, ComputeType compute) {
  WH_ASSIGN(const Family* family, find_family(checkpoint.config));
  return ModelLoader(checkpoint, *family, spec, backend, compute, OnLoad::kKeep).load_layer(layer);
}

Result<LinearWeight> load_embedding(const Checkpoint& checkpoint, const ModelSpec& spec, Backend& backend,
                                    ComputeType compute) {
  WH_ASSIGN(const Family* family, find_family(checkpoint.config));
  return ModelLoader(checkpoint, *family, spec, backend, compute, OnLoad::kKeep).load_embedding();
}

}  // namespace whippet
