#include "backend/cpu/packed_layout.h"

#include "backend/cpu/kernels.h"
#include "backend/cpu/pack.h"
#include "base/math.h"

namespace whippet::cpu {
namespace {

constexpr int32_t kMaxSize = 1 << 26;  // of an output or input: products of two stay within 64 bits

bool is_coded(const LinearWeight& w) { return w.kind == LinearKind::kInt8 || w.kind == LinearKind::kInt4; }

bool is_factor_type(DType type) { return type == DType::kF32 || type == DType::kF16; }

size_t panel_code_bytes(const LinearWeight& w, bool pairs) {
  const auto columns = static_cast<size_t>(w.columns) * kPanelRows;
  switch (w.kind) {
    case LinearKind::kF32:
      return columns * 4;
    case LinearKind::kF16:
      return columns * 2;
    case LinearKind::kBF16:
      return pairs ? static_cast<size_t>(num_pairs(w)) * kPanelRows * 4 : columns * 2;
    case LinearKind::kInt8:
    case LinearKind::kInt4:
      break;
  }
  const size_t coded =
      static_cast<size_t>(num_groups(w)) * static_cast<size_t>(group_columns(w)) * kPanelRows;
  return w.kind == LinearKind::kInt8 ? coded : coded / 2;
}

Status check_sizes(const LinearWeight& w) {
  const auto within = [](int32_t value, int32_t least, int32_t most) {
    return value >= least && value <= most;
  };
  if (!within(w.out, 1, kMaxSize) || !within(w.in, 1, kMaxSize))
    return make_error(Code::kCorrupt, "a packed weight of [{}, {}]", w.out, w.in);
  if (w.kind > LinearKind::kInt4) return make_error(Code::kCorrupt, "an unknown kind of packed weight");
  const bool coded = is_coded(w);
  if (coded ? !within(w.group, 1, kMaxGroup) : w.group != 0)
    return make_error(Code::kCorrupt, "packed groups of {}", w.group);
  if (w.order == nullptr ? w.columns != w.in : !coded || !within(w.columns, w.in, kMaxSize))
    return make_error(Code::kCorrupt, "{} packed columns of {} inputs", w.columns, w.in);
  return {};
}

Status check_types(const LinearWeight& w, bool pairs) {
  const bool coded = is_coded(w);
  const int32_t offset = w.kind == LinearKind::kInt8                       ? 128
                         : w.kind == LinearKind::kInt4 && w.min == nullptr ? 8
                                                                           : 0;
  // A grid without minima whose codes are values has no offset.
  if (w.code_offset != offset && !(w.kind == LinearKind::kInt4 && w.code_offset == 0))
    return make_error(Code::kCorrupt, "packed codes with an offset of {}", w.code_offset);
  if (!is_factor_type(w.scale_type) || !is_factor_type(w.min_type))
    return make_error(Code::kCorrupt, "packed factors of an unknown type");
  const bool in_pairs = w.kind == LinearKind::kBF16 && pairs;
  if (w.input_type != (coded ? DType::kI8 : in_pairs ? DType::kBF16 : DType::kF32))
    return make_error(Code::kCorrupt, "a packed weight for inputs of another type");
  if ((w.scale != nullptr) != coded || (w.min != nullptr && !coded))
    return make_error(Code::kCorrupt, "packed factors that do not fit their codes");
  return {};
}

Status check_order(const LinearWeight& w) {
  if (w.order == nullptr) return {};
  for (int32_t c = 0; c < w.columns; ++c)
    if (w.order[c] < -1 || w.order[c] >= w.in)
      return make_error(Code::kCorrupt, "packed column {} is input {} of {}", c, w.order[c], w.in);
  return {};
}

}  // namespace

PackedLayout packed_layout(const LinearWeight& w, bool pairs, bool min, bool order, bool bias) {
  const auto piece = [](size_t bytes) { return align_up(bytes, size_t{64}); };
  const auto panels = static_cast<size_t>(num_panels(w));
  const size_t factors = panels * static_cast<size_t>(num_groups(w)) * kPanelRows;
  PackedLayout layout;
  layout.panel_bytes = panel_code_bytes(w, pairs);
  layout.scale = piece(panels * layout.panel_bytes);
  layout.min = layout.scale + piece(factors * dtype_size(w.scale_type));
  layout.order = layout.min + (min ? piece(factors * dtype_size(w.min_type)) : 0);
  layout.bias = layout.order + (order ? piece(static_cast<size_t>(w.columns) * sizeof(int32_t)) : 0);
  layout.bytes = layout.bias + (bias ? piece(static_cast<size_t>(w.out) * sizeof(float)) : 0);
  return layout;
}

Status check_packed(const LinearWeight& w, bool pairs) {
  WH_TRY(check_sizes(w));
  WH_TRY(check_types(w, pairs));
  const bool has_min = w.min != nullptr, has_order = w.order != nullptr, has_bias = w.bias != nullptr;
  const PackedLayout layout = packed_layout(w, pairs, has_min, has_order, has_bias);
  const auto* base = w.storage.as<std::byte>();
  const auto lies = [&](const void* array, bool there, size_t at) {
    return there ? array == base + at : array == nullptr;
  };
  if (w.storage.bytes() != layout.bytes || w.bytes != layout.order)
    return make_error(Code::kCorrupt, "a packed weight of {} bytes, expected {}", w.storage.bytes(),
                      layout.bytes);
  if (w.codes != base || !lies(w.scale, is_coded(w), layout.scale) || !lies(w.min, has_min, layout.min) ||
      !lies(w.order, has_order, layout.order) || !lies(w.bias, has_bias, layout.bias))
    return make_error(Code::kCorrupt, "a packed weight whose arrays are elsewhere");
  return check_order(w);
}

}  // namespace whippet::cpu
