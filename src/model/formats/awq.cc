// AWQ's "gemm" layout (Lin et al. 2023; AutoAWQ's modules/linear/gemm.py): 4 bits, packed along the outputs
//   qweight I32 [in, out / 8], qzeros I32 [groups, out / 8], scales [groups, out]
//   w[k, n] = scales[g, n] * (code - zero)
#include "model/formats/format.h"
#include "model/formats/stored.h"

namespace whippet {
namespace {

// Which four bits of a word hold output n % 8.
constexpr int32_t kNibble[8] = {0, 4, 1, 5, 2, 6, 3, 7};

struct Layer {
  const TensorView* qweight;
  const TensorView* qzeros;
  const TensorView* scales;
  int32_t in, out, groups;

  int32_t nibble(const TensorView& tensor, int64_t row, int64_t output) const {
    const auto word = stored_at<uint32_t>(tensor, row * (out / 8) + output / 8);
    return static_cast<int32_t>(word >> (4 * kNibble[output % 8])) & 15;
  }
};

bool has_parts(const Checkpoint& checkpoint, const std::string& layer) {
  const TensorView* qweight = checkpoint.find(layer + ".qweight");
  const TensorView* scales = checkpoint.find(layer + ".scales");
  return qweight != nullptr && scales != nullptr && checkpoint.find(layer + ".qzeros") != nullptr &&
         qweight->type == StorageType::kI32 && qweight->shape.size() == 2 && scales->shape.size() == 2 &&
         qweight->shape[1] <= INT32_MAX && qweight->shape[1] * 8 == scales->shape[1];
}

Result<Layer> read_layer(const Checkpoint& checkpoint, const std::string& name) {
  Layer layer{};
  WH_ASSIGN(layer.qweight, require_dims(checkpoint, name + ".qweight", 2));
  WH_ASSIGN(layer.qzeros, require_dims(checkpoint, name + ".qzeros", 2));
  WH_ASSIGN(layer.scales, require_floats(checkpoint, name + ".scales", 2));
  layer.in = static_cast<int32_t>(layer.qweight->shape[0]);
  layer.groups = static_cast<int32_t>(layer.scales->shape[0]);
  layer.out = static_cast<int32_t>(layer.scales->shape[1]);
  if (layer.qzeros->type != StorageType::kI32 || layer.qzeros->shape[0] != layer.groups ||
      layer.qzeros->shape[1] * 8 != layer.out || layer.groups > layer.in) {
    return make_error(Code::kCorrupt, "tensor {}.qzeros: expected I32 [{}, {}], found {} [{}]", name,
                      layer.groups, layer.out / 8, layer.qzeros->type_name,
                      fmt::join(layer.qzeros->shape, ", "));
  }
  return layer;
}

Result<LinearLayout> layout(const Checkpoint& checkpoint, const std::string& name) {
  WH_ASSIGN(const Layer layer, read_layer(checkpoint, name));
  LinearLayout result;
  result.tensor = name + ".qweight";
  result.codes = CanonicalLinear::Codes::kU4;
  result.in = layer.in;
  result.out = layer.out;
  result.has_min = true;
  WH_ASSIGN(result.group, group_size(checkpoint, result.tensor, layer.in, layer.groups));
  return result;
}

void decode(const Checkpoint& checkpoint, const std::string& name, std::span<const int32_t> rows,
            const RowTarget& target) {
  const Layer layer = *read_layer(checkpoint, name);
  RowTarget to = target;
  for (const int32_t row : rows) {
    for (int64_t k = 0; k < layer.in; ++k) {
      *to.codes++ = static_cast<std::byte>(layer.nibble(*layer.qweight, k, row));
    }
    for (int64_t g = 0; g < layer.groups; ++g) {
      const float scale = float_at(*layer.scales, g * layer.out + row);
      *to.scale++ = scale;
      *to.min++ = -scale * static_cast<float>(layer.nibble(*layer.qzeros, g, row));
    }
  }
}

}  // namespace

Format awq_format() { return {"awq", has_parts, layout, decode}; }

}  // namespace whippet
