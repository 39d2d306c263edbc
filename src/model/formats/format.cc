#include "model/formats/format.h"

#include <algorithm>
#include <limits>

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
    "take the unquantised model, or a GGUF file in F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K "
    "or Q6_K";

}  // namespace

std::span<const Format> formats() {
  static const Format list[] = {dense_format(), gguf_format()};
  return list;
}

bool stores_layer(const Checkpoint& checkpoint, const std::string& layer) {
  return !parts_of(checkpoint, layer).empty();
}

Result<const Format*> find_format(const Checkpoint& checkpoint, const std::string& layer) {
  for (const Format& format : formats()) {
    if (format.holds(checkpoint, layer)) return &format;
  }
  if (const TensorView* tensor = checkpoint.find(layer + ".weight")) {
    return make_error(Code::kUnsupported, "tensor {} is stored as {}, which is not read: {}", tensor->name,
                      tensor->type_name, kWhatToDo);
  }
  const std::string parts = parts_of(checkpoint, layer);
  if (!parts.empty()) {
    return make_error(Code::kUnsupported, "{} is stored as {}, a quantised format that is not read yet: {}",
                      layer, parts, kWhatToDo);
  }
  return make_error(Code::kNotFound, "the checkpoint has no tensor {}.weight", layer);
}

Status check_quantization(const nlohmann::json& config) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    const auto found = config.find(key);
    if (found == config.end() || found->is_null()) continue;
    std::string method = "unknown";
    if (found->is_object() && found->contains("quant_method") && (*found)["quant_method"].is_string()) {
      method = (*found)["quant_method"].get<std::string>();
    }
    const auto reads = [&](const Format& format) {
      return format.quant_method != nullptr && method == format.quant_method;
    };
    if (std::none_of(formats().begin(), formats().end(), reads)) {
      return make_error(
          Code::kUnsupported,
          "config.json: {} has the method '{}', and checkpoints quantised like that are not read "
          "yet: {}",
          key, method, kWhatToDo);
    }
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
