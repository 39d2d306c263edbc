// For fuzzers: decodes a few rows of every tensor that a format reads, with buffers of exactly their size.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/math.h"
#include "model/formats/format.h"

namespace whippet {

inline void decode_some_rows(std::vector<TensorView> tensors) {
  constexpr int32_t kMaxIn = 1 << 16;  // keeps one input quick; what is longer differs in nothing but time
  Checkpoint checkpoint;
  for (TensorView& tensor : tensors) {
    tensor.name = "layer.weight";
    checkpoint.tensors[tensor.name] = std::move(tensor);
    const Result<const Format*> format = find_format(checkpoint, "layer");
    if (!format.ok()) continue;
    const Result<LinearLayout> layout = (*format)->layout(checkpoint, "layer");
    if (!layout.ok() || layout->in > kMaxIn) continue;
    const std::vector<int32_t> rows = {0, layout->out - 1};
    const auto groups =
        static_cast<size_t>(layout->group == 0 ? 0 : ceil_div(layout->in, layout->group)) * rows.size();
    std::vector<std::byte> codes(rows.size() * static_cast<size_t>(layout->in) * code_bytes(layout->codes));
    std::vector<float> scale(groups);
    std::vector<float> min(layout->has_min ? groups : 0);
    (*format)->decode(checkpoint, "layer", rows,
                      {codes.data(), scale.data(), min.empty() ? nullptr : min.data()});
  }
}

}  // namespace whippet
