#include "quantize/quantizer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "backend/packing.h"
#include "backend/registry.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/version.h"
#include "model/formats/format.h"
#include "model/loader.h"
#include "quantize/calibration.h"
#include "quantize/gptq.h"
#include "quantize/output_folder.h"
#include "quantize/partial_folder.h"

namespace whippet {
namespace {

using nlohmann::json;

json written_config(const QuantizeOptions& options) {
  return {{"quant_method", "gptq"},
          {"bits", options.grid.bits},
          {"group_size", options.grid.group == 0 ? -1 : options.grid.group},
          {"desc_act", options.gptq && options.act_order},
          {"sym", options.grid.symmetric},
          {"damp_percent", options.damping},
          {"checkpoint_format", "gptq"},
          {"true_sequential", false},
          {"static_groups", false},
          {"lm_head", false},
          {"meta", {{"quantizer", {fmt::format("whippet:{}", release())}}}}};
}

// FNV-1a over the ids and the lengths: tells calibration texts apart, nothing more.
uint64_t digest(const std::vector<std::vector<int32_t>>& sequences) {
  uint64_t hash = 14695981039346656037u;
  const auto add = [&](uint64_t word) { hash = (hash ^ word) * 1099511628211u; };
  for (const auto& ids : sequences) {
    add(ids.size());
    for (const int32_t id : ids) add(static_cast<uint32_t>(id));
  }
  return hash;
}

json settings_of(const Checkpoint& checkpoint, const QuantizeOptions& options) {
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) bytes += tensor.data.size();
  std::error_code ignored;
  return {{"method", options.gptq ? "gptq" : "rtn"},
          {"quantization_config", written_config(options)},
          {"model", std::filesystem::weakly_canonical(checkpoint.path, ignored).string()},
          {"model_bytes", bytes},
          {"calibration", options.gptq ? digest(options.sequences) : 0}};
}

Result<const Format*> find_dense(const Checkpoint& checkpoint, const std::string& layer) {
  WH_ASSIGN(const Format* format, find_format(checkpoint, layer));
  if (std::string(format->name) == "dense") return format;
  return make_error(Code::kUnsupported,
                    "{} is stored as {}: quantize takes the unquantized model, of which less is lost", layer,
                    format->name);
}

// The weight of a layer as the file has it, [out, in] fp32.
Result<std::vector<float>> read_dense(const Checkpoint& checkpoint, const LinearSource& source) {
  WH_ASSIGN(const Format* format, find_dense(checkpoint, source.layer));
  WH_ASSIGN(const LinearLayout layout, format->layout(checkpoint, source.layer));
  if (layout.out != source.out || layout.in != source.in)
    return make_error(Code::kCorrupt, "tensor {}: expected shape [{}, {}] from the config, found [{}, {}]",
                      layout.tensor, source.out, source.in, layout.out, layout.in);
  CanonicalLinear weight;
  weight.codes_type = layout.codes;
  weight.storage = Buffer::host(static_cast<size_t>(layout.out) * static_cast<size_t>(layout.in) *
                                code_bytes(layout.codes));
  weight.codes = {weight.storage.as<std::byte>(), weight.storage.bytes()};
  std::vector<int32_t> rows(static_cast<size_t>(layout.out));
  std::iota(rows.begin(), rows.end(), 0);
  format->decode(checkpoint, source.layer, rows, {.codes = weight.storage.as<std::byte>()});
  std::vector<float> values(static_cast<size_t>(layout.out) * static_cast<size_t>(layout.in));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = code_value(weight, i);
    if (!std::isfinite(values[i]))
      return make_error(Code::kCorrupt, "tensor {}: the value at {} is {}, which cannot be rounded",
                        layout.tensor, i, values[i]);
  }
  return values;
}

class Quantizer {
 public:
  Quantizer(Checkpoint& checkpoint, const ModelSpec& spec, const QuantizeOptions& options, Backend& backend,
            const PartialFolder& folder)
      : checkpoint_(checkpoint), spec_(spec), options_(options), backend_(backend), folder_(folder) {
    num_threads_ = options.num_threads > 0 ? options.num_threads
                                           : static_cast<int32_t>(std::thread::hardware_concurrency());
  }

  Result<std::vector<LinearError>> run() {
    std::vector<LinearError> errors;
    if (options_.gptq) {
      WH_ASSIGN(calibration_, Calibration::create(checkpoint_, spec_, backend_, options_.sequences));
    }
    Progress progress("quantizing", static_cast<uint64_t>(spec_.num_layers), Progress::Unit::kCount);
    for (int32_t layer = 0; layer < spec_.num_layers; ++layer) {
      if (!folder_.has(layer)) WH_TRY(quantize_layer(layer));
      WH_ASSIGN(const json report, folder_.overlay(layer, checkpoint_));
      WH_TRY(read_report(report, errors));
      if (calibration_ && layer + 1 < spec_.num_layers) {
        WH_ASSIGN(LayerWeights weights, load(layer));
        calibration_->advance(std::move(weights), layer);
      }
      progress.add(1);
    }
    return errors;
  }

 private:
  Result<LayerWeights> load(int32_t layer) {
    return load_layer(checkpoint_, spec_, layer, backend_, ComputeType::kF32);
  }

  Status quantize_layer(int32_t layer) {
    WH_ASSIGN(const LayerSources sources, layer_sources(checkpoint_, spec_, layer));
    std::optional<LayerMoments> moments;
    if (calibration_) {
      WH_ASSIGN(LayerWeights weights, load(layer));
      moments.emplace(calibration_->measure(std::move(weights), layer));
    }
    std::vector<OwnedTensor> tensors;
    json report = json::array();
    const auto add = [&](const std::vector<LinearSource>& same_input, Moments LayerMoments::*of) {
      return quantize_projection(same_input, moments ? &((*moments).*of) : nullptr, tensors, report);
    };
    WH_TRY(add(sources.qkv, &LayerMoments::qkv));
    WH_TRY(add(sources.o, &LayerMoments::o));
    WH_TRY(add(sources.gate_up, &LayerMoments::gate_up));
    WH_TRY(add(sources.down, &LayerMoments::down));
    return folder_.save(layer, tensors, report);
  }

  // Layers that read the same input. moments: of that input, or nullptr for rounding to nearest.
  Status quantize_projection(const std::vector<LinearSource>& sources, Moments* moments,
                             std::vector<OwnedTensor>& tensors, json& report) {
    const int32_t in = sources.front().in;
    InverseFactor factor;
    std::span<const float> sum;
    if (moments != nullptr) {
      sum = moments->sum();
      Result<InverseFactor> found = factorise(
          sum, in,
          {.damping = options_.damping, .act_order = options_.act_order, .num_threads = num_threads_});
      if (!found.ok())
        return make_error(found.error().code, "{}: {}", sources.front().layer, found.error().message);
      factor = std::move(*found);
    }
    for (const LinearSource& source : sources) {
      WH_ASSIGN(const std::vector<float> weight, read_dense(checkpoint_, source));
      const double whole = change(weight, {}, in, sum);
      const auto relative = [&](const CodedLayer& coded) {
        return whole > 0 ? change(weight, decode_layer(coded), in, sum) / whole : 0;
      };
      const CodedLayer rounded = round_layer(weight, source.out, in, options_.grid, num_threads_);
      const double rounding_error = relative(rounded);
      double error = rounding_error;
      if (moments == nullptr) {
        append(pack_layer(source.layer, rounded), tensors);
      } else {
        const CodedLayer coded = gptq_layer(weight, source.out, factor, options_.grid, num_threads_);
        error = relative(coded);
        append(pack_layer(source.layer, coded), tensors);
      }
      report.push_back({source.layer, error, rounding_error});
    }
    return {};
  }

  // The squared change of the outputs from a to b (empty: 0); without moments that of the weights.
  double change(std::span<const float> a, std::span<const float> b, int32_t in,
                std::span<const float> moments) const {
    if (!moments.empty()) return output_error(a, b, moments, in, num_threads_);
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += std::pow(a[i] - (b.empty() ? 0.0f : b[i]), 2);
    return sum;
  }

  static void append(std::vector<OwnedTensor> more, std::vector<OwnedTensor>& tensors) {
    std::move(more.begin(), more.end(), std::back_inserter(tensors));
  }

  static Status read_report(const json& report, std::vector<LinearError>& errors) {
    for (const json& row : report.is_array() ? report : json::array({0})) {
      if (!row.is_array() || row.size() != 3 || !row[0].is_string() || !row[1].is_number() ||
          !row[2].is_number())
        return make_error(Code::kCorrupt, "a report of errors in the partial folder is damaged: remove it");
      errors.push_back({row[0].get<std::string>(), row[1].get<double>(), row[2].get<double>()});
    }
    return {};
  }

  Checkpoint& checkpoint_;
  const ModelSpec& spec_;
  const QuantizeOptions& options_;
  Backend& backend_;
  const PartialFolder& folder_;
  int32_t num_threads_ = 1;
  std::unique_ptr<Calibration> calibration_;
};

// Everything that can be refused before hours of work.
Status check_model(const Checkpoint& checkpoint, const ModelSpec& spec, const QuantizeOptions& options) {
  if (checkpoint.container == Checkpoint::Container::kGguf)
    return make_error(
        Code::kUnsupported,
        "{} is GGUF, whose names and settings other loaders do not read; quantize takes the folder "
        "with safetensors that it was made from",
        checkpoint.path.string());
  WH_TRY(check_writable(checkpoint));
  for (const auto& ids : options.sequences) {
    for (const int32_t id : ids)
      if (id < 0 || id >= spec.vocab_size)
        return make_error(Code::kInvalidArgument, "token id {} is outside the vocabulary of {}", id,
                          spec.vocab_size);
  }
  for (int32_t layer = 0; layer < spec.num_layers; ++layer) {
    WH_ASSIGN(const LayerSources sources, layer_sources(checkpoint, spec, layer));
    for (const auto* projection : {&sources.qkv, &sources.o, &sources.gate_up, &sources.down}) {
      for (const LinearSource& source : *projection) {
        WH_TRY(check_packable(source.layer, source.out, source.in, options.grid.bits));
        WH_TRY(find_dense(checkpoint, source.layer));
      }
    }
  }
  return {};
}

}  // namespace

Result<std::vector<LinearError>> quantize_model(Checkpoint checkpoint, const QuantizeOptions& options) {
  WH_ASSIGN(const ModelSpec spec, read_spec(checkpoint));
  WH_TRY(check_model(checkpoint, spec, options));
  WH_ASSIGN(const PartialFolder folder, PartialFolder::open(options.out, settings_of(checkpoint, options)));
  BackendOptions on_host;
  on_host.num_threads = options.num_threads;
  WH_ASSIGN(const auto backend, make_backend("cpu", on_host));
  if (options.gptq) {
    uint64_t tokens = 0;
    for (const auto& ids : options.sequences) tokens += ids.size();
    log_info("calibrating with {} tokens, which takes {} beside one layer's weights", tokens,
             format_bytes(Calibration::memory(spec, tokens)));
  }
  checkpoint.config["quantization_config"] = written_config(options);
  WH_ASSIGN(std::vector<LinearError> errors, Quantizer(checkpoint, spec, options, *backend, folder).run());
  WH_TRY(write_model_folder(checkpoint, folder.result()));
  WH_TRY(folder.publish());
  return errors;
}

}  // namespace whippet
