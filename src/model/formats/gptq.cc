// GPTQ as AutoGPTQ and GPTQModel write it (Frantar et al. 2023; the layout of AutoGPTQ's qlinear_cuda):
//   qweight I32 [in * bits / 32, out]      codes packed along the inputs
//   qzeros  I32 [groups, out * bits / 32]  zero points packed along the outputs, one less in version 1
//   scales  [groups, out], g_idx I32 [in] the group of each input (act-order), optional
//   w[k, n] = scales[g, n] * (code - zero)
// 2, 3, 4 and 8 bits, told by the shapes, so that layers may differ.
#include <algorithm>
#include <vector>

#include "model/formats/format.h"
#include "model/formats/stored.h"

namespace whippet {
namespace {

struct Layer {
  const TensorView* qweight;
  const TensorView* qzeros;
  const TensorView* scales;
  int32_t in, out, groups, bits;
  int32_t zero_offset;  // zero point = stored + this, modulo 2^bits

  uint32_t code(int64_t input, int64_t output) const {
    const auto word = [&](int64_t row) { return stored_at<uint32_t>(*qweight, row * out + output); };
    return packed_code(word, input, bits);
  }
  int32_t zero(int64_t group, int64_t output) const {
    const int64_t words = qzeros->shape[1];
    const auto word = [&](int64_t at) { return stored_at<uint32_t>(*qzeros, group * words + at); };
    return (static_cast<int32_t>(packed_code(word, output, bits)) + zero_offset) & ((1 << bits) - 1);
  }
  // kU4 holds the codes as they are, kI8 those of 8 bits less 128.
  int32_t code_offset() const { return bits == 8 ? 128 : 0; }
};

bool has_parts(const Checkpoint& checkpoint, const std::string& layer) {
  const TensorView* qweight = checkpoint.find(layer + ".qweight");
  const TensorView* scales = checkpoint.find(layer + ".scales");
  return qweight != nullptr && scales != nullptr && checkpoint.find(layer + ".qzeros") != nullptr &&
         qweight->type == StorageType::kI32 && qweight->shape.size() == 2 && scales->shape.size() == 2 &&
         qweight->shape[1] == scales->shape[1];
}

bool is_version_2(const Checkpoint& checkpoint) {
  const nlohmann::json& config = quantization_config(checkpoint);
  for (const char* key : {"checkpoint_format", "format"}) {
    const auto found = config.find(key);
    if (found != config.end() && *found == "gptq_v2") return true;
  }
  return false;
}

Result<Layer> read_layer(const Checkpoint& checkpoint, const std::string& name) {
  Layer layer{};
  WH_ASSIGN(layer.qweight, require_dims(checkpoint, name + ".qweight", 2));
  WH_ASSIGN(layer.qzeros, require_dims(checkpoint, name + ".qzeros", 2));
  WH_ASSIGN(layer.scales, require_floats(checkpoint, name + ".scales", 2));
  layer.groups = static_cast<int32_t>(layer.scales->shape[0]);
  layer.out = static_cast<int32_t>(layer.scales->shape[1]);
  const int64_t words = layer.qzeros->shape[1] * 32;
  for (const int32_t bits : {2, 3, 4, 8}) {
    if (words == int64_t{layer.out} * bits) layer.bits = bits;
  }
  if (layer.bits == 0 || layer.qzeros->shape[0] != layer.groups || layer.qzeros->type != StorageType::kI32) {
    return make_error(
        Code::kCorrupt,
        "tensor {}.qzeros: expected I32 of {} rows and 2, 3, 4 or 8 bits for each of {} columns, "
        "found {} [{}]",
        name, layer.groups, layer.out, layer.qzeros->type_name, fmt::join(layer.qzeros->shape, ", "));
  }
  const int64_t in = layer.qweight->shape[0] * 32 / layer.bits;
  if (layer.qweight->shape[0] * 32 % layer.bits != 0 || in > (int64_t{1} << 30) || in < layer.groups) {
    return make_error(Code::kCorrupt,
                      "tensor {}.qweight: {} rows of words are no inputs of {} bits in {} groups", name,
                      layer.qweight->shape[0], layer.bits, layer.groups);
  }
  layer.in = static_cast<int32_t>(in);
  layer.zero_offset = is_version_2(checkpoint) ? 0 : 1;
  return layer;
}

// The group of each input, empty where they follow each other; sets the group size.
Status read_groups(const Checkpoint& checkpoint, const std::string& name, const Layer& layer,
                   LinearLayout& layout) {
  const TensorView* tensor = checkpoint.find(name + ".g_idx");
  if (tensor == nullptr) {
    WH_ASSIGN(layout.group, group_size(checkpoint, layout.tensor, layer.in, layer.groups));
    return {};
  }
  const int64_t shape[] = {layer.in};
  WH_TRY(checkpoint.require(name + ".g_idx", shape));
  if (tensor->type != StorageType::kI32) {
    return make_error(Code::kCorrupt, "tensor {}: expected type I32, found {}", tensor->name,
                      tensor->type_name);
  }
  WH_ASSIGN(std::vector<int32_t> groups, read_group_of_input(*tensor, layer.groups));
  const auto first = static_cast<int32_t>(std::count(groups.begin(), groups.end(), 0));
  bool in_order = first > 0;
  for (int32_t i = 0; in_order && i < layer.in; ++i) in_order = groups[static_cast<size_t>(i)] == i / first;
  if (in_order && (layer.in - 1) / first == layer.groups - 1) {
    layout.group = first;
    return {};
  }
  const Result<int32_t> said = group_size(checkpoint, layout.tensor, layer.in, layer.groups);
  // Any size with as many groups will do where each input says its own.
  layout.group = said.ok() ? *said : (layer.in + layer.groups - 1) / layer.groups;
  if ((layer.in + layout.group - 1) / layout.group != layer.groups) return said.error();
  layout.g_idx = std::move(groups);
  return {};
}

Result<LinearLayout> layout(const Checkpoint& checkpoint, const std::string& name) {
  WH_ASSIGN(const Layer layer, read_layer(checkpoint, name));
  LinearLayout result;
  result.tensor = name + ".qweight";
  result.in = layer.in;
  result.out = layer.out;
  result.codes = layer.bits == 8 ? CanonicalLinear::Codes::kI8 : CanonicalLinear::Codes::kU4;
  result.has_min = layer.bits != 8;
  for (int64_t g = 0; g < layer.groups && !result.has_min; ++g) {
    for (int64_t n = 0; n < layer.out && !result.has_min; ++n) result.has_min = layer.zero(g, n) != 128;
  }
  WH_TRY(read_groups(checkpoint, name, layer, result));
  return result;
}

void decode(const Checkpoint& checkpoint, const std::string& name, std::span<const int32_t> rows,
            const RowTarget& target) {
  const Layer layer = *read_layer(checkpoint, name);
  RowTarget to = target;
  for (const int32_t row : rows) {
    for (int64_t k = 0; k < layer.in; ++k) {
      *to.codes++ = static_cast<std::byte>(static_cast<int32_t>(layer.code(k, row)) - layer.code_offset());
    }
    for (int64_t g = 0; g < layer.groups; ++g) {
      const float scale = float_at(*layer.scales, g * layer.out + row);
      *to.scale++ = scale;
      if (to.min != nullptr) {
        *to.min++ = scale * static_cast<float>(layer.code_offset() - layer.zero(g, row));
      }
    }
  }
}

}  // namespace

Format gptq_format() { return {"gptq", has_parts, layout, decode}; }

}  // namespace whippet
