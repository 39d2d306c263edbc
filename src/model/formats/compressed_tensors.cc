// compressed-tensors, as llm-compressor writes it (compressed_tensors/compressors of vllm-project).
// "int-quantized": weight I8 [out, in] with weight_scale [], [1] (one for all), [out, 1] (one a row) or
//   [out, groups]; weight_zero_point I8 of the same shape where it is asymmetric.
// "pack-quantized": weight_packed I32 [out, in * bits / 32] of codes plus 2^(bits - 1), weight_shape I64 [2],
//   weight_scale [out, groups], weight_zero_point I32 [out * bits / 32, groups] packed along the outputs, and
//   weight_g_idx [in] under act-order.
//   w = (code - zero) * scale
#include <algorithm>
#include <vector>

#include "model/formats/format.h"
#include "model/formats/stored.h"

namespace whippet {
namespace {

struct Layer {
  const TensorView* weight;
  const TensorView* scale;
  const TensorView* zero;  // nullptr: symmetric
  int32_t in, out, groups, bits;
  bool packed;
  bool one_scale;  // for all rows

  // As the file has it: packed codes are above the real ones by half their range.
  int32_t code(int64_t row, int64_t column) const {
    if (!packed) return stored_at<int8_t>(*weight, row * in + column);
    const int64_t words = weight->shape[1];
    const auto word = [&](int64_t at) { return stored_at<uint32_t>(*weight, row * words + at); };
    return static_cast<int32_t>(packed_code(word, column, bits));
  }
  int64_t scale_at(int64_t row, int64_t group) const { return one_scale ? 0 : row * groups + group; }
  // In the codes' own counting.
  int32_t zero_of(int64_t row, int64_t group) const {
    if (zero == nullptr) return packed ? 1 << (bits - 1) : 0;
    if (!packed) return stored_at<int8_t>(*zero, scale_at(row, group));
    const auto word = [&](int64_t at) { return stored_at<uint32_t>(*zero, at * groups + group); };
    return static_cast<int32_t>(packed_code(word, row, bits));
  }
  bool four_bits() const { return packed && bits <= 4; }
  // What is taken off a code to fit it into an int8.
  int32_t code_offset() const { return packed && !four_bits() ? 1 << (bits - 1) : 0; }
};

bool holds(const Checkpoint& checkpoint, const std::string& layer) {
  if (checkpoint.find(layer + ".weight_scale") == nullptr) return false;
  const TensorView* weight = checkpoint.find(layer + ".weight");
  if (weight != nullptr) return weight->type == StorageType::kI8;
  const TensorView* packed = checkpoint.find(layer + ".weight_packed");
  return packed != nullptr && packed->type == StorageType::kI32;
}

Error corrupt(const TensorView& tensor, const std::string& expected) {
  return make_error(Code::kCorrupt, "tensor {}: expected {}, found {} [{}]", tensor.name, expected,
                    tensor.type_name, fmt::join(tensor.shape, ", "));
}

Status read_shape(const Checkpoint& checkpoint, const std::string& name, Layer& layer) {
  WH_ASSIGN(layer.weight, require_dims(checkpoint, name + ".weight_packed", 2));
  const int64_t two[] = {2};
  WH_ASSIGN(const TensorView* shape, checkpoint.require(name + ".weight_shape", two));
  if (shape->type != StorageType::kI64 && shape->type != StorageType::kI32)
    return corrupt(*shape, "two whole numbers");
  const auto dim = [&](int64_t at) -> int64_t {
    return shape->type == StorageType::kI64 ? stored_at<int64_t>(*shape, at) : stored_at<int32_t>(*shape, at);
  };
  const int64_t out = dim(0), in = dim(1);
  if (out != layer.weight->shape[0] || in < 1 || in > layer.weight->shape[1] * 32)
    return corrupt(*layer.weight, fmt::format("the packed rows of a matrix [{}, {}]", out, in));
  layer.out = static_cast<int32_t>(out);
  layer.in = static_cast<int32_t>(in);
  for (int32_t bits = 1; bits <= 8; ++bits) {
    if ((in * bits + 31) / 32 == layer.weight->shape[1]) layer.bits = bits;
  }
  if (layer.bits == 0)
    return corrupt(*layer.weight, fmt::format("1 to 8 bits for each of {} inputs a row", in));
  return {};
}

Status read_zero(const Checkpoint& checkpoint, const std::string& name, Layer& layer) {
  layer.zero = checkpoint.find(name + ".weight_zero_point");
  if (layer.zero == nullptr) return {};
  const std::vector<int64_t> packed = {(int64_t{layer.out} * layer.bits + 31) / 32, layer.groups};
  const std::vector<int64_t>& expected = layer.packed ? packed : layer.scale->shape;
  const StorageType type = layer.packed ? StorageType::kI32 : StorageType::kI8;
  if (layer.zero->shape == expected && layer.zero->type == type) return {};
  return corrupt(*layer.zero, fmt::format("{} [{}]", storage_type_name(type), fmt::join(expected, ", ")));
}

Result<Layer> read_layer(const Checkpoint& checkpoint, const std::string& name) {
  Layer layer{};
  layer.packed = checkpoint.find(name + ".weight_packed") != nullptr;
  if (layer.packed) {
    WH_TRY(read_shape(checkpoint, name, layer));
  } else {
    WH_ASSIGN(const LinearLayout matrix, matrix_layout(checkpoint, name));
    layer.weight = checkpoint.find(name + ".weight");
    layer.out = matrix.out;
    layer.in = matrix.in;
    layer.bits = 8;
  }
  layer.scale = checkpoint.find(name + ".weight_scale");
  const std::vector<int64_t>& shape = layer.scale->shape;
  layer.one_scale = shape.empty() || (shape.size() == 1 && shape[0] == 1);
  layer.groups = 1;
  if (!layer.one_scale) {
    const bool grid = shape.size() == 2 && shape[0] == layer.out && shape[1] >= 1 && shape[1] <= layer.in;
    if (!grid && shape != std::vector<int64_t>{layer.out})
      return corrupt(*layer.scale, fmt::format("scales of {} rows", layer.out));
    if (grid) layer.groups = static_cast<int32_t>(shape[1]);
  }
  if (!is_float_type(layer.scale->type)) return corrupt(*layer.scale, "type F32, F16 or BF16");
  WH_TRY(read_zero(checkpoint, name, layer));
  return layer;
}

Status read_order(const Checkpoint& checkpoint, const std::string& name, const Layer& layer,
                  LinearLayout& result) {
  const TensorView* order = checkpoint.find(name + ".weight_g_idx");
  if (order == nullptr) return {};
  if (order->type != StorageType::kI32 || order->shape != std::vector<int64_t>{layer.in})
    return corrupt(*order, fmt::format("I32 [{}]", layer.in));
  if (stored_at<int32_t>(*order, 0) == -1) return {};  // "not set"
  WH_ASSIGN(std::vector<int32_t> groups, read_group_of_input(*order, layer.groups));
  bool in_order = true;
  for (int32_t i = 0; i < layer.in; ++i)
    in_order = in_order && groups[static_cast<size_t>(i)] == i / result.group;
  if (!in_order) result.g_idx = std::move(groups);
  return {};
}

Result<LinearLayout> layout(const Checkpoint& checkpoint, const std::string& name) {
  WH_ASSIGN(const Layer layer, read_layer(checkpoint, name));
  LinearLayout result;
  result.tensor = layer.weight->name;
  result.in = layer.in;
  result.out = layer.out;
  result.codes = layer.four_bits() ? CanonicalLinear::Codes::kU4 : CanonicalLinear::Codes::kI8;
  result.has_min = layer.four_bits() || layer.zero != nullptr;
  WH_ASSIGN(result.group, group_size(checkpoint, layer.scale->name, layer.in, layer.groups));
  WH_TRY(read_order(checkpoint, name, layer, result));
  return result;
}

void decode(const Checkpoint& checkpoint, const std::string& name, std::span<const int32_t> rows,
            const RowTarget& target) {
  const Layer layer = *read_layer(checkpoint, name);
  RowTarget to = target;
  for (const int32_t row : rows) {
    for (int64_t i = 0; i < layer.in; ++i) {
      *to.codes++ = static_cast<std::byte>(layer.code(row, i) - layer.code_offset());
    }
    for (int64_t g = 0; g < layer.groups; ++g) {
      const float scale = float_at(*layer.scale, layer.scale_at(row, g));
      *to.scale++ = scale;
      if (to.min != nullptr) {
        *to.min++ = scale * static_cast<float>(layer.code_offset() - layer.zero_of(row, g));
      }
    }
  }
}

}  // namespace

Format compressed_tensors_format() { return {"compressed-tensors", holds, layout, decode}; }

}  // namespace whippet
