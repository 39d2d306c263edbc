// Plain matrices in F32, F16 or BF16: `layer`.weight [out, in].
#include <cstring>
#include <optional>

#include "model/formats/format.h"

namespace whippet {
namespace {

std::optional<CanonicalLinear::Codes> codes_of(StorageType type) {
  switch (type) {
    case StorageType::kF32:
      return CanonicalLinear::Codes::kF32;
    case StorageType::kF16:
      return CanonicalLinear::Codes::kF16;
    case StorageType::kBF16:
      return CanonicalLinear::Codes::kBF16;
    default:
      return std::nullopt;
  }
}

bool holds(const Checkpoint& checkpoint, const std::string& layer) {
  const TensorView* tensor = checkpoint.find(layer + ".weight");
  return tensor != nullptr && codes_of(tensor->type).has_value();
}

Result<LinearLayout> layout(const Checkpoint& checkpoint, const std::string& layer) {
  WH_ASSIGN(LinearLayout result, matrix_layout(checkpoint, layer));
  const TensorView* tensor = checkpoint.find(layer + ".weight");
  result.codes = *codes_of(tensor->type);
  result.stored = tensor->data;
  return result;
}

void decode(const Checkpoint& checkpoint, const std::string& layer, std::span<const int32_t> rows,
            const RowTarget& target) {
  const TensorView* tensor = checkpoint.find(layer + ".weight");
  const size_t row_bytes =
      static_cast<size_t>(tensor->shape[1]) * static_cast<size_t>(storage_block(tensor->type).bytes);
  std::byte* to = target.codes;
  for (const int32_t row : rows) {
    std::memcpy(to, tensor->data.data() + static_cast<size_t>(row) * row_bytes, row_bytes);
    to += row_bytes;
  }
}

}  // namespace

Format dense_format() { return {"dense", holds, layout, decode}; }

}  // namespace whippet
