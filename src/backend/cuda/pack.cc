#include "backend/cuda/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/packing.h"
#include "base/math.h"

namespace whippet::cuda {
namespace {

using Codes = CanonicalLinear::Codes;
constexpr int32_t kPiece = 8;

struct Columns {
  int32_t count = 0;
  int32_t group = 0;            // packed columns that share a scale, as `source` counts them
  std::vector<int32_t> order;   // [count] packed column -> input, -1: a pad; empty: the identity
  std::vector<int32_t> source;  // [packed groups] -> group of the canonical weight
};

void check_shapes(const CanonicalLinear& w) {
  const size_t width = w.codes_type == Codes::kF32 ? 4 : w.dense() ? 2 : 1;
  WH_CHECK(w.out > 0 && w.in > 0, "[{}, {}]", w.out, w.in);
  WH_CHECK_LE(static_cast<size_t>(w.out) * static_cast<size_t>(w.in) * width, w.codes.size());
  WH_CHECK(w.bias.empty() || w.bias.size() == static_cast<size_t>(w.out), "bias of {}", w.bias.size());
  if (w.dense()) return;
  const size_t scales = static_cast<size_t>(w.out) * static_cast<size_t>(w.num_groups());
  WH_CHECK(w.group > 0 && w.scale.size() == scales, "group {}, {} scales", w.group, w.scale.size());
  WH_CHECK(w.min.empty() || w.min.size() == scales, "{} of {}", w.min.size(), scales);
}

Status check_groups(const CanonicalLinear& w) {
  if (w.g_idx.empty()) return {};
  if (w.g_idx.size() != static_cast<size_t>(w.in))
    return make_error(Code::kCorrupt, "g_idx has {} entries, expected one for each of {} inputs",
                      w.g_idx.size(), w.in);
  for (const int32_t g : w.g_idx)
    if (g < 0 || g >= w.num_groups())
      return make_error(Code::kCorrupt, "g_idx holds {}, expected less than {} groups", g, w.num_groups());
  return {};
}

Columns plan_columns(const CanonicalLinear& w) {
  Columns plan;
  plan.count = w.in;
  if (w.g_idx.empty()) {
    plan.group = std::min(w.group, w.in);
    plan.source.resize(static_cast<size_t>(w.num_groups()));
    std::iota(plan.source.begin(), plan.source.end(), 0);
    return plan;
  }
  std::vector<int32_t> sorted(static_cast<size_t>(w.in));
  std::iota(sorted.begin(), sorted.end(), 0);
  const auto group_of = [&](int32_t i) { return w.g_idx[static_cast<size_t>(i)]; };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](int32_t a, int32_t b) { return group_of(a) < group_of(b); });
  // The longest pieces that all groups are a multiple of; where the shortest are too long, pads fill groups
  // up.
  std::vector<int32_t> sizes(static_cast<size_t>(w.num_groups()));
  for (const int32_t i : sorted) ++sizes[static_cast<size_t>(group_of(i))];
  plan.group = kCellColumns;
  for (const int32_t size : sizes)
    while (plan.group > kPiece && size % plan.group != 0) plan.group /= 2;
  const auto piece = static_cast<size_t>(plan.group);
  for (size_t i = 0; i < sorted.size(); ++i) {
    const int32_t g = group_of(sorted[i]);
    const bool new_group = i > 0 && g != group_of(sorted[i - 1]);
    while (new_group && plan.order.size() % piece != 0) plan.order.push_back(-1);
    if (plan.order.size() % piece == 0) plan.source.push_back(g);
    plan.order.push_back(sorted[i]);
  }
  plan.count = static_cast<int32_t>(plan.order.size());
  return plan;
}

LinearKind kind_of(DType dtype) {
  if (dtype == DType::kF16) return LinearKind::kF16;
  return dtype == DType::kBF16 ? LinearKind::kBF16 : LinearKind::kF32;
}

// Dense weights, and those that are to be computed in full, are kept in the type of the activations.
LinearKind packed_kind(const CanonicalLinear& w, ComputeType compute, DType activations) {
  const bool coded = !w.dense() && compute != ComputeType::kF32;
  return coded || activations == DType::kF32 ? packed_kind(w, compute) : kind_of(activations);
}

// One row of a dense weight.
void pack_dense_row(const CanonicalLinear& w, LinearKind kind, int32_t o, std::byte* to) {
  const auto first = static_cast<size_t>(o) * static_cast<size_t>(w.in);
  const bool same = (kind == LinearKind::kBF16 && w.codes_type == Codes::kBF16) ||
                    (kind == LinearKind::kF16 && w.codes_type == Codes::kF16) ||
                    (kind == LinearKind::kF32 && w.codes_type == Codes::kF32);
  if (same) {
    const size_t width = kind == LinearKind::kF32 ? 4 : 2;
    std::memcpy(to, w.codes.data() + first * width, static_cast<size_t>(w.in) * width);
    return;
  }
  for (int32_t i = 0; i < w.in; ++i) {
    const float value = weight_value(w, o, i);
    const auto at = static_cast<size_t>(i);
    if (kind == LinearKind::kF32) {
      reinterpret_cast<float*>(to)[at] = value;
    } else {
      reinterpret_cast<uint16_t*>(to)[at] = kind == LinearKind::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
    }
  }
}

bool is_quantised(LinearKind kind) { return kind == LinearKind::kInt8 || kind == LinearKind::kInt4; }

// Columns of a cell that share a scale.
int32_t group_of_cell(const Columns& plan) {
  return plan.source.size() == 1 ? kCellColumns : std::gcd(plan.group, kCellColumns);
}

// Whether every minimum is -8 times its scale, which leaves codes from -8 to 7.
bool is_symmetric(const CanonicalLinear& w) {
  if (w.codes_type != Codes::kU4 || w.min.empty()) return false;
  for (size_t i = 0; i < w.min.size(); ++i)
    if (w.min[i] != -8 * w.scale[i]) return false;
  return true;
}

// One row of a cell, all zeros: columns from `first` on.
void pack_cell_row(const CanonicalLinear& w, const Columns& plan, const WeightView& view, int32_t o,
                   int32_t first, std::byte* cell) {
  const size_t row = static_cast<size_t>(o) * static_cast<size_t>(w.in);
  const int32_t count = std::min(kCellColumns, plan.count - first);
  for (int32_t c = 0; c < count; ++c) {
    const int32_t i = plan.order.empty() ? first + c : plan.order[static_cast<size_t>(first + c)];
    if (i < 0) continue;
    const std::byte code = w.codes[row + static_cast<size_t>(i)];
    std::byte* eight = cell + place_in_cell(view.kind, o, c / 8);
    if (view.kind == LinearKind::kInt8) {
      eight[byte_of_column(c)] = code;
    } else {
      eight[bit_of_column(c) / 8] |= (code & std::byte{15}) << bit_of_column(c) % 8;
    }
  }
  auto* scales = reinterpret_cast<float*>(cell + code_bytes_of_cell(view.kind)) + o % kCellRows;
  const size_t factors = static_cast<size_t>(o) * static_cast<size_t>(w.num_groups());
  const int32_t groups = kCellColumns / view.group;
  for (int32_t g = 0; g * view.group < count; ++g) {
    const size_t at = factors + static_cast<size_t>(
                                    plan.source[static_cast<size_t>((first + g * view.group) / plan.group)]);
    scales[g * kCellRows] = w.scale[at];
    if (view.has_min) scales[(groups + g) * kCellRows] = w.min.empty() ? 0.0f : w.min[at];
  }
}

// `to` is zeroed.
void pack_rows(const CanonicalLinear& w, const Columns& plan, const WeightView& view, std::byte* to) {
  for (int32_t o = 0; o < w.out; ++o) {
    if (!is_quantised(view.kind)) {
      pack_dense_row(w, view.kind, o, to + view.row_bytes * o);
      continue;
    }
    std::byte* cell = to + int64_t{o / kCellRows} * view.cells * view.cell_bytes;
    for (int32_t first = 0; first < plan.count; first += kCellColumns, cell += view.cell_bytes)
      pack_cell_row(w, plan, view, o, first, cell);
  }
}

size_t on_line(size_t bytes) { return align_up(bytes, size_t{256}); }

void pack_bias(const std::vector<float>& bias, DType activations, std::byte* to) {
  std::memcpy(to, bias.data(), bias.size() * 4);
  to += on_line(bias.size() * 4);
  for (const float value : bias) {
    const uint16_t bits = activations == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
    const size_t width = activations == DType::kF32 ? 4 : 2;
    std::memcpy(to, activations == DType::kF32 ? static_cast<const void*>(&value) : &bits, width);
    to += width;
  }
}

}  // namespace

WeightView view_of(const LinearWeight& w) {
  WeightView view{.kind = w.kind, .out = w.out, .in = w.in, .columns = w.columns};
  if (is_quantised(w.kind)) {
    view.group = w.group;
    view.code_offset = w.code_offset;
    view.has_min = w.min != nullptr;
    view.cells = ceil_div(w.columns, kCellColumns);
    const int32_t floats = kCellRows * (kCellColumns / w.group) * (view.has_min ? 2 : 1);
    view.cell_bytes = code_bytes_of_cell(w.kind) + floats * 4;
  } else {
    view.row_bytes = align_up<int64_t>(w.columns, 8) * (w.kind == LinearKind::kF32 ? 4 : 2);
  }
  view.codes = static_cast<const uint8_t*>(w.codes);
  view.order = w.order;
  view.bias = w.bias;
  return view;
}

const void* typed_bias(const LinearWeight& w) {
  if (w.bias == nullptr) return nullptr;
  return reinterpret_cast<const std::byte*>(w.bias) + on_line(static_cast<size_t>(w.out) * 4);
}

Result<LinearWeight> pack_linear(const CanonicalLinear& w, ComputeType compute, DType activations) {
  check_shapes(w);
  WH_TRY(check_groups(w));
  LinearWeight packed;
  packed.kind = packed_kind(w, compute, activations);
  packed.out = w.out;
  packed.in = w.in;
  Columns plan;
  plan.count = w.in;
  const bool quantised = is_quantised(packed.kind);
  if (quantised) {
    plan = plan_columns(w);
    packed.group = group_of_cell(plan);
    packed.code_offset = is_symmetric(w) ? 8 : 0;
  }
  packed.columns = plan.count;
  // Codes of four bits always have a minimum or an offset, so that kernels know two cases and not three.
  const bool has_min =
      quantised && packed.code_offset == 0 && (!w.min.empty() || packed.kind == LinearKind::kInt4);
  const std::byte somewhere{};
  packed.min = has_min ? &somewhere : nullptr;
  const WeightView view = view_of(packed);

  const size_t octets = static_cast<size_t>(ceil_div(w.out, kCellRows)) * static_cast<size_t>(view.cells);
  const size_t codes = on_line(quantised ? octets * static_cast<size_t>(view.cell_bytes)
                                         : static_cast<size_t>(view.row_bytes) * static_cast<size_t>(w.out));
  const size_t order = on_line(plan.order.size() * 4);
  const size_t bias = on_line(w.bias.size() * 4) * 2;
  std::vector<std::byte> host(codes + order + bias);
  pack_rows(w, plan, view, host.data());
  if (!plan.order.empty()) std::memcpy(host.data() + codes, plan.order.data(), plan.order.size() * 4);
  if (!w.bias.empty()) pack_bias(w.bias, activations, host.data() + codes + order);

  packed.bytes = codes;
  WH_ASSIGN(packed.storage, Device::try_allocate(host.size()));
  WH_CUDA(cudaMemcpy(packed.storage.as<void>(), host.data(), host.size(), cudaMemcpyHostToDevice));
  WH_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
  const auto* base = packed.storage.as<std::byte>();
  const auto place = [&](bool present, size_t at) { return present ? base + at : nullptr; };
  const auto of_cell = static_cast<size_t>(quantised ? code_bytes_of_cell(packed.kind) : 0);
  packed.codes = base;
  packed.scale = place(quantised, of_cell);
  packed.min = place(has_min, of_cell + static_cast<size_t>(kCellRows * 4) *
                                            static_cast<size_t>(has_min ? kCellColumns / view.group : 0));
  packed.order = reinterpret_cast<const int32_t*>(place(!plan.order.empty(), codes));
  packed.bias = reinterpret_cast<const float*>(place(!w.bias.empty(), codes + order));
  return packed;
}

}  // namespace whippet::cuda
