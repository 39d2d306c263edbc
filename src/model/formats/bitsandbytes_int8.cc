// bitsandbytes' LLM.int8 (Dettmers et al. 2022) as transformers saves it: weight I8 [out, in], SCB F32 [out]
// the largest magnitude of each row; w = code * SCB / 127. Whippet keeps activations whole, so that the
// outlier columns need no path of their own.
#include "model/formats/format.h"
#include "model/formats/stored.h"

namespace whippet {
namespace {

bool holds(const Checkpoint& checkpoint, const std::string& layer) {
  const TensorView* weight = checkpoint.find(layer + ".weight");
  return weight != nullptr && weight->type == StorageType::kI8 && checkpoint.find(layer + ".SCB") != nullptr;
}

Result<LinearLayout> layout(const Checkpoint& checkpoint, const std::string& name) {
  WH_ASSIGN(LinearLayout result, matrix_layout(checkpoint, name));
  WH_ASSIGN(const TensorView* scale, require_floats(checkpoint, name + ".SCB", 1));
  if (scale->shape[0] != result.out) {
    return make_error(Code::kCorrupt, "tensor {}: expected {} values, found {}", scale->name, result.out,
                      scale->shape[0]);
  }
  const TensorView* order = checkpoint.find(name + ".weight_format");
  if (order != nullptr && (order->data.size() != 1 || stored_at<uint8_t>(*order, 0) != 0)) {
    return make_error(Code::kUnsupported,
                      "tensor {}: the rows of this int8 weight are not stored one after the other; save it "
                      "again with a bitsandbytes of 0.39 or later",
                      order->name);
  }
  result.codes = CanonicalLinear::Codes::kI8;
  result.group = result.in;
  result.stored = {};
  return result;
}

void decode(const Checkpoint& checkpoint, const std::string& name, std::span<const int32_t> rows,
            const RowTarget& target) {
  const TensorView* weight = checkpoint.find(name + ".weight");
  const TensorView* scale = checkpoint.find(name + ".SCB");
  const auto in = static_cast<size_t>(weight->shape[1]);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(target.codes + i * in, weight->data.data() + static_cast<size_t>(rows[i]) * in, in);
    target.scale[i] = float_at(*scale, rows[i]) / 127.0f;
  }
}

}  // namespace

Format bitsandbytes_int8_format() { return {"bitsandbytes int8", holds, layout, decode}; }

}  // namespace whippet
