// GGUF's block types: `layer`.weight [out, in], blocks along each row.
#include "model/formats/format.h"
#include "model/formats/gguf_blocks.h"

namespace whippet {
namespace {

bool holds(const Checkpoint& checkpoint, const std::string& layer) {
  const TensorView* tensor = checkpoint.find(layer + ".weight");
  return tensor != nullptr && find_gguf_block(tensor->type) != nullptr;
}

Result<LinearLayout> layout(const Checkpoint& checkpoint, const std::string& layer) {
  WH_ASSIGN(LinearLayout result, matrix_layout(checkpoint, layer));
  const GgufBlock* block = find_gguf_block(checkpoint.find(layer + ".weight")->type);
  result.codes = block->codes;
  result.group = block->group;
  result.has_min = block->has_min;
  return result;
}

void decode(const Checkpoint& checkpoint, const std::string& layer, std::span<const int32_t> rows,
            const RowTarget& target) {
  const TensorView* tensor = checkpoint.find(layer + ".weight");
  const GgufBlock* block = find_gguf_block(tensor->type);
  const BlockSize size = storage_block(tensor->type);
  const int64_t blocks_per_row = tensor->shape[1] / size.elements;
  const int32_t groups = size.elements / block->group;
  RowTarget to = target;
  for (const int32_t row : rows) {
    const std::byte* from = tensor->data.data() + row * blocks_per_row * size.bytes;
    for (int64_t b = 0; b < blocks_per_row; ++b) {
      block->unpack(from, to.codes, to.scale, to.min);
      from += size.bytes;
      to.codes += size.elements;
      to.scale += groups;
      if (to.min != nullptr) to.min += groups;
    }
  }
}

}  // namespace

Format gguf_format() { return {"gguf", holds, layout, decode}; }

}  // namespace whippet
