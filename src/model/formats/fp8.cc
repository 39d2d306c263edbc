// FP8 weights, as vLLM's "fp8", compressed-tensors' "float-quantized", ModelOpt and fbgemm write them:
//   weight F8_E4M3 [out, in] with weight_scale [] or [1] (one for all), [out] or [out, 1] (one a row), or
//   weight_scale_inv [out / b, in / b] (one a block of b x b, and despite its name a factor).
// Becomes bf16, whose eight bits of precision hold an e4m3 number times a scale to 2^-9. Activations are kept
// whole, so input_scale is not needed.
#include <array>
#include <cmath>

#include "model/formats/format.h"
#include "model/formats/stored.h"
#include "tensor/dtype.h"

namespace whippet {
namespace {

// OCP's E4M3 (OFP8 specification 1.0): bias 7, no infinities, all ones are NaN.
float e4m3_value(uint32_t bits) {
  const auto exponent = static_cast<int>(bits >> 3 & 15);
  const auto mantissa = static_cast<float>(bits & 7);
  float value = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  if ((bits & 127) == 127) value = std::nanf("");
  return (bits & 128) != 0 ? -value : value;
}

struct Layer {
  const TensorView* weight;
  const TensorView* scale;
  int64_t in, out;
  int64_t block_rows, block_columns, blocks_per_row;  // that share a scale

  float scale_of(int64_t row, int64_t column) const {
    return float_at(*scale, row / block_rows * blocks_per_row + column / block_columns);
  }
};

bool is_fp8(const TensorView* weight) { return weight != nullptr && weight->type == StorageType::kF8E4M3; }

const TensorView* find_scale(const Checkpoint& checkpoint, const std::string& layer) {
  const TensorView* scale = checkpoint.find(layer + ".weight_scale");
  return scale != nullptr ? scale : checkpoint.find(layer + ".weight_scale_inv");
}

bool holds(const Checkpoint& checkpoint, const std::string& layer) {
  return is_fp8(checkpoint.find(layer + ".weight")) && find_scale(checkpoint, layer) != nullptr;
}

// The sides of a block: what the config says where the scales agree, else 128 x 128.
Status read_block(const Checkpoint& checkpoint, Layer& layer) {
  const std::vector<int64_t>& grid = layer.scale->shape;
  layer.block_rows = layer.block_columns = 128;
  const nlohmann::json& config = quantization_config(checkpoint);
  const auto said = config.find("weight_block_size");
  if (said != config.end() && said->is_array() && said->size() == 2 && (*said)[0].is_number_integer() &&
      (*said)[1].is_number_integer()) {
    layer.block_rows = (*said)[0].get<int64_t>();
    layer.block_columns = (*said)[1].get<int64_t>();
  }
  const auto blocks = [](int64_t size, int64_t block) { return block < 1 ? 0 : (size - 1) / block + 1; };
  if (grid[0] != blocks(layer.out, layer.block_rows) || grid[1] != blocks(layer.in, layer.block_columns)) {
    return make_error(
        Code::kCorrupt,
        "tensor {}: scales [{}] for a weight [{}, {}] are neither one for all, one a row, nor one "
        "a block of {} x {}",
        layer.scale->name, fmt::join(grid, ", "), layer.out, layer.in, layer.block_rows, layer.block_columns);
  }
  layer.blocks_per_row = grid[1];
  return {};
}

Result<Layer> read_layer(const Checkpoint& checkpoint, const std::string& name) {
  WH_ASSIGN(const LinearLayout matrix, matrix_layout(checkpoint, name));
  Layer layer{};
  layer.weight = checkpoint.find(name + ".weight");
  layer.scale = find_scale(checkpoint, name);
  layer.out = matrix.out;
  layer.in = matrix.in;
  layer.block_columns = layer.in;
  layer.blocks_per_row = 1;
  const std::vector<int64_t>& shape = layer.scale->shape;
  if (!is_float_type(layer.scale->type)) {
    return make_error(Code::kUnsupported, "tensor {}: expected type F32, F16 or BF16, found {}",
                      layer.scale->name, layer.scale->type_name);
  }
  if (shape.empty() || shape == std::vector<int64_t>{1} || shape == std::vector<int64_t>{1, 1}) {
    layer.block_rows = layer.out;
  } else if (shape == std::vector<int64_t>{layer.out} || shape == std::vector<int64_t>{layer.out, 1}) {
    layer.block_rows = 1;
  } else if (shape.size() == 2) {
    WH_TRY(read_block(checkpoint, layer));
  } else {
    return make_error(Code::kCorrupt, "tensor {}: expected one scale, or {}, found [{}]", layer.scale->name,
                      layer.out, fmt::join(shape, ", "));
  }
  return layer;
}

Result<LinearLayout> layout(const Checkpoint& checkpoint, const std::string& name) {
  WH_TRY(read_layer(checkpoint, name));
  WH_ASSIGN(LinearLayout result, matrix_layout(checkpoint, name));
  result.codes = CanonicalLinear::Codes::kBF16;
  return result;
}

void decode(const Checkpoint& checkpoint, const std::string& name, std::span<const int32_t> rows,
            const RowTarget& target) {
  const Layer layer = *read_layer(checkpoint, name);
  std::array<float, 256> values{};
  for (uint32_t bits = 0; bits < 256; ++bits) values[bits] = e4m3_value(bits);
  std::byte* to = target.codes;
  for (const int32_t row : rows) {
    for (int64_t i = 0; i < layer.in; ++i) {
      const float value = values[stored_at<uint8_t>(*layer.weight, row * layer.in + i)];
      const uint16_t bits = f32_to_bf16(value * layer.scale_of(row, i));
      std::memcpy(to, &bits, 2);
      to += 2;
    }
  }
}

}  // namespace

Format fp8_format() { return {"fp8", holds, layout, decode}; }

}  // namespace whippet
