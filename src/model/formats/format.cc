#include "model/formats/format.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "model/formats/stored.h"

namespace whippet {
namespace {

// "qweight, qzeros, scales": how a layer that no format holds is stored.
std::string parts_of(const Checkpoint& checkpoint, const std::string& layer) {
  std::vector<std::string> parts;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (name.size() > layer.size() + 1 && name.starts_with(layer) && name[layer.size()] == '.' &&
        name != layer + ".bias") {
      parts.push_back(name.substr(layer.size() + 1));
    }
  }
  std::sort(parts.begin(), parts.end());
  return fmt::format("{}", fmt::join(parts, ", "));
}

constexpr const char* kWhatToDo =
    "take the unquantised model, or one in GPTQ, AWQ (gemm), bitsandbytes, compressed-tensors, FP8 or GGUF";

// Formats that are known and not read, by a tensor that only they have.
struct Unread {
  const char* part;
  const char* name;
};
constexpr Unread kUnread[] = {{"B", "Marlin"},
                              {"q_weight", "EXL2"},
                              {"trellis", "EXL3"},
                              {"W_q", "HQQ"},
                              {"codebooks", "AQLM"},
                              {"Qidxs", "QuIP#"},
                              {"weight_scales", "EETQ"},
                              {"zeros", "BitBLAS"},
                              {"weight_blocks", "MXFP4"},
                              {"weight_packed", "a packed form of compressed-tensors (NVFP4 or MXFP4)"},
                              {"compressed", "2:4 sparse compressed-tensors"},
                              {"bitmask", "sparse compressed-tensors"}};

std::string unread_name(const Checkpoint& checkpoint, const std::string& layer) {
  for (const Unread& unread : kUnread) {
    if (checkpoint.find(layer + "." + unread.part) != nullptr) return unread.name;
  }
  const TensorView* qweight = checkpoint.find(layer + ".qweight");
  const TensorView* scales = checkpoint.find(layer + ".scales");
  if (qweight == nullptr || scales == nullptr || checkpoint.find(layer + ".qzeros") == nullptr) return "";
  if (qweight->type != StorageType::kI32) return "GPTQ or AWQ in words of " + qweight->type_name;
  const bool gemv =
      qweight->shape.size() == 2 && scales->shape.size() == 2 && qweight->shape[0] == scales->shape[0];
  return gemv ? "AWQ's gemv layout" : "";
}

}  // namespace

std::span<const Format> formats() {
  static const Format list[] = {dense_format(),
                                gguf_format(),
                                gptq_format(),
                                awq_format(),
                                bitsandbytes_int8_format(),
                                bitsandbytes_4bit_format(),
                                compressed_tensors_format(),
                                fp8_format()};
  return list;
}

bool stores_layer(const Checkpoint& checkpoint, const std::string& layer) {
  return !parts_of(checkpoint, layer).empty();
}

std::vector<std::string> stored_formats(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const Format& format : formats()) {
    const bool found =
        std::any_of(checkpoint.tensors.begin(), checkpoint.tensors.end(), [&](const auto& tensor) {
          const bool vector = tensor.second.shape.size() < 2;  // a norm is no layer
          return !vector && format.holds(checkpoint, tensor.first.substr(0, tensor.first.rfind('.')));
        });
    if (found) names.emplace_back(format.name);
  }
  return names;
}

Result<const Format*> find_format(const Checkpoint& checkpoint, const std::string& layer) {
  for (const Format& format : formats()) {
    if (format.holds(checkpoint, layer)) return &format;
  }
  const std::string unread = unread_name(checkpoint, layer);
  if (!unread.empty()) {
    return make_error(Code::kUnsupported, "{} is stored as {}, which is not read: {}", layer, unread,
                      kWhatToDo);
  }
  if (const TensorView* tensor = checkpoint.find(layer + ".weight")) {
    return make_error(Code::kUnsupported, "tensor {} is stored as {}, which is not read: {}", tensor->name,
                      tensor->type_name, kWhatToDo);
  }
  const std::string parts = parts_of(checkpoint, layer);
  if (!parts.empty()) {
    return make_error(Code::kUnsupported, "{} is stored as {}, a form that is not read: {}", layer, parts,
                      kWhatToDo);
  }
  return make_error(Code::kNotFound, "the checkpoint has no tensor {}.weight", layer);
}

Status check_quantization(const Checkpoint& checkpoint) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    const auto found = checkpoint.config.find(key);
    if (found == checkpoint.config.end() || found->is_null()) continue;
    if (!found->is_object()) return make_error(Code::kCorrupt, "config.json: {} is not an object", key);
  }
  const nlohmann::json& config = quantization_config(checkpoint);
  const auto is_set = [&](const char* key) {
    const auto found = config.find(key);
    return found != config.end() && !found->is_null() && *found != false && !found->empty();
  };
  if (is_set("is_marlin_format")) {
    return make_error(Code::kUnsupported, "the checkpoint is in Marlin's format, which is not read: {}",
                      kWhatToDo);
  }
  if (is_set("transform_config")) {
    return make_error(Code::kUnsupported,
                      "config.json: the quantization has a transform_config, and such transforms of the "
                      "activations are not done: {}",
                      kWhatToDo);
  }
  constexpr const char* kArrangements[] = {"gptq", "gptq_v2"};
  const auto format = config.find("checkpoint_format");
  if (format != config.end() && format->is_string() &&
      std::none_of(std::begin(kArrangements), std::end(kArrangements),
                   [&](const char* known) { return *format == known; })) {
    return make_error(Code::kUnsupported,
                      "config.json: the quantization's checkpoint_format is '{}', which is not read: {}",
                      format->get<std::string>(), kWhatToDo);
  }
  return {};
}

size_t code_bytes(CanonicalLinear::Codes codes) {
  switch (codes) {
    case CanonicalLinear::Codes::kF32:
      return 4;
    case CanonicalLinear::Codes::kF16:
    case CanonicalLinear::Codes::kBF16:
      return 2;
    case CanonicalLinear::Codes::kU4:
    case CanonicalLinear::Codes::kI8:
      return 1;
  }
  return 0;
}

Result<LinearLayout> matrix_layout(const Checkpoint& checkpoint, const std::string& layer) {
  const TensorView* tensor = checkpoint.find(layer + ".weight");
  if (tensor == nullptr) return make_error(Code::kNotFound, "the checkpoint has no tensor {}.weight", layer);
  const auto fits = [](int64_t dim) { return dim > 0 && dim <= std::numeric_limits<int32_t>::max(); };
  if (tensor->shape.size() != 2 || !fits(tensor->shape[0]) || !fits(tensor->shape[1])) {
    return make_error(Code::kCorrupt, "tensor {}: expected a matrix, found shape [{}]", tensor->name,
                      fmt::join(tensor->shape, ", "));
  }
  LinearLayout layout;
  layout.tensor = tensor->name;
  layout.out = static_cast<int32_t>(tensor->shape[0]);
  layout.in = static_cast<int32_t>(tensor->shape[1]);
  return layout;
}

}  // namespace whippet
