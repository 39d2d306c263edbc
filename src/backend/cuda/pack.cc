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
  int32_t group = 0;            // packed columns that share a scale
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
  plan.group = kPiece;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const int32_t g = group_of(sorted[i]);
    const bool new_group = i > 0 && g != group_of(sorted[i - 1]);
    while (new_group && plan.order.size() % kPiece != 0) plan.order.push_back(-1);
    if (plan.order.size() % kPiece == 0) plan.source.push_back(g);
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

// One packed row of codes, `to` zeroed.
void pack_row(const CanonicalLinear& w, const Columns& plan, LinearKind kind, int32_t o, std::byte* to) {
  const auto first = static_cast<size_t>(o) * static_cast<size_t>(w.in);
  const bool same = (kind == LinearKind::kBF16 && w.codes_type == Codes::kBF16) ||
                    (kind == LinearKind::kF16 && w.codes_type == Codes::kF16) ||
                    (kind == LinearKind::kF32 && w.codes_type == Codes::kF32);
  if (same) {
    const size_t width = kind == LinearKind::kF32 ? 4 : 2;
    std::memcpy(to, w.codes.data() + first * width, static_cast<size_t>(w.in) * width);
    return;
  }
  const bool quantised = kind == LinearKind::kInt8 || kind == LinearKind::kInt4;
  const int32_t columns = quantised ? plan.count : w.in;
  for (int32_t c = 0; c < columns; ++c) {
    const int32_t i = !quantised || plan.order.empty() ? c : plan.order[static_cast<size_t>(c)];
    if (i < 0) continue;
    const auto at = static_cast<size_t>(c);
    if (kind == LinearKind::kInt8) {
      to[at] = w.codes[first + static_cast<size_t>(i)];
    } else if (kind == LinearKind::kInt4) {
      to[at / 2] |= (w.codes[first + static_cast<size_t>(i)] & std::byte{15}) << (c % 2 * 4);
    } else if (kind == LinearKind::kF32) {
      reinterpret_cast<float*>(to)[at] = weight_value(w, o, i);
    } else {
      const float value = weight_value(w, o, i);
      reinterpret_cast<uint16_t*>(to)[at] = kind == LinearKind::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
    }
  }
}

void pack_scales(const CanonicalLinear& w, const Columns& plan, const std::vector<float>& from,
                 std::byte* to) {
  auto* values = reinterpret_cast<float*>(to);
  for (int32_t o = 0; o < w.out; ++o)
    for (const int32_t g : plan.source)
      *values++ = from[static_cast<size_t>(o) * static_cast<size_t>(w.num_groups()) + static_cast<size_t>(g)];
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

int64_t row_bytes(LinearKind kind, int32_t columns) {
  const int64_t eights = align_up<int64_t>(columns, 8);
  switch (kind) {
    case LinearKind::kF32:
      return eights * 4;
    case LinearKind::kF16:
    case LinearKind::kBF16:
      return eights * 2;
    case LinearKind::kInt8:
      return align_up<int64_t>(columns, 16);
    case LinearKind::kInt4:
      return align_up<int64_t>(columns, 32) / 2;
  }
  return 0;
}

WeightView view_of(const LinearWeight& w) {
  WeightView view{.kind = w.kind, .out = w.out, .in = w.in, .columns = w.columns, .group = w.group};
  view.groups = w.group > 0 ? ceil_div(w.columns, w.group) : 0;
  view.row_bytes = row_bytes(w.kind, w.columns);
  view.codes = static_cast<const uint8_t*>(w.codes);
  view.scale = static_cast<const float*>(w.scale);
  view.min = static_cast<const float*>(w.min);
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
  const bool quantised = packed.kind == LinearKind::kInt8 || packed.kind == LinearKind::kInt4;
  Columns plan;
  plan.count = w.in;
  if (quantised) plan = plan_columns(w);
  packed.columns = plan.count;
  packed.group = plan.group;

  const auto row = static_cast<size_t>(row_bytes(packed.kind, plan.count));
  const size_t codes = on_line(row * static_cast<size_t>(w.out));
  const size_t scales = on_line(static_cast<size_t>(w.out) * plan.source.size() * 4);
  const size_t mins = quantised && !w.min.empty() ? scales : 0;
  const size_t order = on_line(plan.order.size() * 4);
  const size_t bias = on_line(w.bias.size() * 4) * 2;
  std::vector<std::byte> host(codes + scales + mins + order + bias);
  for (int32_t o = 0; o < w.out; ++o)
    pack_row(w, plan, packed.kind, o, host.data() + row * static_cast<size_t>(o));
  if (quantised) pack_scales(w, plan, w.scale, host.data() + codes);
  if (mins > 0) pack_scales(w, plan, w.min, host.data() + codes + scales);
  if (!plan.order.empty())
    std::memcpy(host.data() + codes + scales + mins, plan.order.data(), plan.order.size() * 4);
  if (!w.bias.empty()) pack_bias(w.bias, activations, host.data() + codes + scales + mins + order);

  packed.bytes = codes + scales + mins;
  packed.storage = Device::allocate(host.size());
  WH_CUDA(cudaMemcpy(packed.storage.as<void>(), host.data(), host.size(), cudaMemcpyHostToDevice));
  WH_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
  const auto* base = packed.storage.as<std::byte>();
  const auto place = [&](bool present, size_t at) { return present ? base + at : nullptr; };
  packed.codes = base;
  packed.scale = reinterpret_cast<const float*>(place(quantised, codes));
  packed.min = reinterpret_cast<const float*>(place(mins > 0, codes + scales));
  packed.order = reinterpret_cast<const int32_t*>(place(!plan.order.empty(), codes + scales + mins));
  packed.bias = reinterpret_cast<const float*>(place(!w.bias.empty(), codes + scales + mins + order));
  return packed;
}

}  // namespace whippet::cuda
