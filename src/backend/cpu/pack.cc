#include "backend/cpu/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "backend/cpu/kernels.h"
#include "backend/packing.h"
#include "base/math.h"

namespace whippet::cpu {
namespace {

using Codes = CanonicalLinear::Codes;

// Where packed columns and packed groups come from.
struct Plan {
  int32_t columns = 0;
  int32_t group = 0;            // packed columns that share a scale; dense: 0
  std::vector<int32_t> order;   // [columns] packed column -> input column or -1; empty: the identity
  std::vector<int32_t> source;  // [packed groups] -> group of the canonical weight
};

Status check_groups(const CanonicalLinear& w) {
  if (w.g_idx.empty()) return {};
  if (static_cast<int32_t>(w.g_idx.size()) != w.in)
    return make_error(Code::kCorrupt, "g_idx has {} entries, expected one for each of {} inputs",
                      w.g_idx.size(), w.in);
  for (int32_t i = 0; i < w.in; ++i)
    if (w.g_idx[i] < 0 || w.g_idx[i] >= w.num_groups())
      return make_error(Code::kCorrupt, "g_idx[{}] is {}, expected less than {} groups", i, w.g_idx[i],
                        w.num_groups());
  return {};
}

void check_shapes(const CanonicalLinear& w) {
  const size_t elements = static_cast<size_t>(w.out) * w.in;
  const size_t width = w.codes_type == Codes::kF32 ? 4 : w.dense() ? 2 : 1;
  WH_CHECK(w.out > 0 && w.in > 0, "[{}, {}]", w.out, w.in);
  WH_CHECK_LE(elements * width, w.codes.size());
  WH_CHECK(w.bias.empty() || w.bias.size() == static_cast<size_t>(w.out), "bias of {}", w.bias.size());
  if (w.dense()) return;
  WH_CHECK(w.group > 0, "group {}", w.group);
  const size_t scales = static_cast<size_t>(w.out) * w.num_groups();
  WH_CHECK_EQ(w.scale.size(), scales);
  WH_CHECK(w.min.empty() || w.min.size() == scales, "{} of {}", w.min.size(), scales);
}

// Columns sorted by group, their order kept within each.
std::vector<int32_t> sort_by_group(const CanonicalLinear& w) {
  std::vector<int32_t> order(w.in);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return w.g_idx[a] < w.g_idx[b]; });
  return order;
}

// Whether every step of `group` sorted columns lies in one group, as when each group is full.
bool lines_up(const CanonicalLinear& w, const std::vector<int32_t>& sorted) {
  for (int32_t c = 0; c < w.in; ++c)
    if (c % w.group != 0 && w.g_idx[sorted[c]] != w.g_idx[sorted[c - 1]]) return false;
  return true;
}

// The largest step within the kernels' limit that a group can be cut into evenly: each piece repeats its
// scale.
int32_t even_piece(int32_t group, bool single) {
  if (single) return std::min(group, kLinearChunk);  // pieces of the only group may differ
  int32_t piece = std::min(group, kLinearChunk);
  while (group % piece != 0) --piece;
  return piece;
}

Plan make_plan(const CanonicalLinear& w) {
  Plan plan;
  plan.columns = w.in;
  if (w.g_idx.empty()) {
    plan.group = even_piece(std::min(w.group, w.in), w.num_groups() == 1);
    for (int32_t c = 0; c < w.in; c += plan.group) plan.source.push_back(c / w.group);
    return plan;
  }
  const std::vector<int32_t> sorted = sort_by_group(w);
  if (lines_up(w, sorted)) {
    plan.group = even_piece(std::min(w.group, w.in), w.num_groups() == 1);
    for (int32_t c = 0; c < w.in; c += plan.group) plan.source.push_back(w.g_idx[sorted[c]]);
    if (!std::is_sorted(sorted.begin(), sorted.end())) plan.order = sorted;
    return plan;
  }
  plan.group = std::min(w.group, 32);  // short steps keep the pads few
  for (int32_t c = 0; c < w.in; ++c) {
    const int32_t g = w.g_idx[sorted[c]];
    const bool new_group = c > 0 && g != w.g_idx[sorted[c - 1]];
    while (new_group && plan.order.size() % plan.group != 0) plan.order.push_back(-1);
    if (plan.order.size() % plan.group == 0) plan.source.push_back(g);
    plan.order.push_back(sorted[c]);
  }
  plan.columns = static_cast<int32_t>(plan.order.size());
  return plan;
}

// put(packed column, input, first output, outputs) for every column of a panel that is no pad.
template <class Put>
void for_columns(const CanonicalLinear& w, const Plan& plan, int32_t panel, const Put& put) {
  const int32_t first = panel * kPanelRows, rows = std::min(kPanelRows, w.out - first);
  for (int32_t c = 0; c < plan.columns; ++c) {
    const int32_t i = plan.order.empty() ? c : plan.order[c];
    if (i >= 0) put(c, i, first, rows);
  }
}

size_t code_bytes(LinearKind kind, const Plan& plan) {  // of one panel
  const auto columns = static_cast<size_t>(plan.columns) * kPanelRows;
  switch (kind) {
    case LinearKind::kF32:
      return columns * 4;
    case LinearKind::kF16:
    case LinearKind::kBF16:
      return columns * 2;
    case LinearKind::kInt8:
      return columns;
    case LinearKind::kInt4:
      return plan.source.size() * ceil_div(plan.group, 8) * kPanelRows * 4;
  }
  return 0;
}

// convert(value) for every weight, [columns][16].
template <class T, class Convert>
void pack_values(const CanonicalLinear& w, const Plan& plan, int32_t panel, T* to, const Convert& convert) {
  for_columns(w, plan, panel, [&](int32_t c, int32_t i, int32_t first, int32_t rows) {
    for (int32_t r = 0; r < rows; ++r)
      to[static_cast<size_t>(c) * kPanelRows + r] = convert(weight_value(w, first + r, i));
  });
}

// Elements of the type they have, [columns][16].
template <class T>
void pack_as_they_are(const CanonicalLinear& w, const Plan& plan, int32_t panel, T* to) {
  for_columns(w, plan, panel, [&](int32_t c, int32_t i, int32_t first, int32_t rows) {
    const std::byte* from = w.codes.data() + (static_cast<size_t>(first) * w.in + i) * sizeof(T);
    for (int32_t r = 0; r < rows; ++r, from += static_cast<size_t>(w.in) * sizeof(T))
      std::memcpy(to + static_cast<size_t>(c) * kPanelRows + r, from, sizeof(T));
  });
}

void pack_nibbles(const CanonicalLinear& w, const Plan& plan, int32_t panel, uint32_t* to) {
  const int32_t group_dwords = ceil_div(plan.group, 8);
  for_columns(w, plan, panel, [&](int32_t c, int32_t i, int32_t first, int32_t rows) {
    const int32_t in_group = c % plan.group;
    uint32_t* dwords = to + static_cast<size_t>(c / plan.group * group_dwords + in_group / 8) * kPanelRows;
    const std::byte* from = w.codes.data() + static_cast<size_t>(first) * w.in + i;
    for (int32_t r = 0; r < rows; ++r, from += w.in)
      dwords[r] |= (std::to_integer<uint32_t>(*from) & 15u) << (4 * (in_group % 8));
  });
}

void pack_panel(const CanonicalLinear& w, const Plan& plan, LinearKind kind, int32_t panel, std::byte* to) {
  auto* bits = reinterpret_cast<uint16_t*>(to);
  switch (kind) {
    case LinearKind::kF32:
      return pack_values(w, plan, panel, reinterpret_cast<float*>(to), [](float value) { return value; });
    case LinearKind::kF16:
      if (w.codes_type == Codes::kF16) return pack_as_they_are(w, plan, panel, bits);
      return pack_values(w, plan, panel, bits, f32_to_f16);
    case LinearKind::kBF16:
      if (w.codes_type == Codes::kBF16) return pack_as_they_are(w, plan, panel, bits);
      return pack_values(w, plan, panel, bits, f32_to_bf16);
    case LinearKind::kInt8:
      return pack_as_they_are(w, plan, panel, reinterpret_cast<int8_t*>(to));
    case LinearKind::kInt4:
      return pack_nibbles(w, plan, panel, reinterpret_cast<uint32_t*>(to));
  }
}

// From [out, groups] to [panel][groups][16].
void pack_scales(const std::vector<float>& from, const CanonicalLinear& w, const Plan& plan, int32_t panel,
                 float* to) {
  const size_t groups = plan.source.size();
  to += static_cast<size_t>(panel) * groups * kPanelRows;
  const int32_t rows = std::min(kPanelRows, w.out - panel * kPanelRows);
  for (int32_t r = 0; r < rows; ++r)
    for (size_t g = 0; g < groups; ++g)
      to[g * kPanelRows + r] =
          from[static_cast<size_t>(panel * kPanelRows + r) * w.num_groups() + plan.source[g]];
}

}  // namespace

Result<LinearWeight> pack_linear(const CanonicalLinear& w, ComputeType compute, ThreadPool& pool) {
  check_shapes(w);
  WH_TRY(check_groups(w));
  LinearWeight packed;
  packed.kind = packed_kind(w, compute);
  const bool quantised = packed.kind == LinearKind::kInt8 || packed.kind == LinearKind::kInt4;
  Plan plan;
  plan.columns = w.in;
  if (quantised) plan = make_plan(w);
  packed.out = w.out;
  packed.in = w.in;
  packed.columns = plan.columns;
  packed.group = plan.group;

  const int32_t panels = num_panels(packed);
  const size_t panel_bytes = code_bytes(packed.kind, plan);
  const auto piece = [](size_t bytes) { return align_up(bytes, size_t{64}); };
  const size_t codes = piece(panels * panel_bytes);
  const size_t scales = piece(panels * plan.source.size() * kPanelRows * sizeof(float));
  const size_t mins = w.min.empty() || !quantised ? 0 : scales;
  const size_t order = piece(plan.order.size() * sizeof(int32_t));
  packed.storage = Buffer::host(codes + scales + mins + order + piece(w.bias.size() * sizeof(float)));
  packed.bytes = codes + scales + mins;

  auto* base = packed.storage.as<std::byte>();
  auto* scale = reinterpret_cast<float*>(base + codes);
  auto* min = reinterpret_cast<float*>(base + codes + scales);
  pool.run(panels, [&](int32_t panel, int32_t) {
    pack_panel(w, plan, packed.kind, panel, base + static_cast<size_t>(panel) * panel_bytes);
    if (quantised) pack_scales(w.scale, w, plan, panel, scale);
    if (mins > 0) pack_scales(w.min, w, plan, panel, min);
  });
  const auto place = [&](size_t at, const auto& values) {
    if (!values.empty()) std::memcpy(base + at, values.data(), values.size() * 4);
    return values.empty() ? nullptr : base + at;
  };
  packed.codes = base;
  packed.scale = quantised ? scale : nullptr;
  packed.min = mins > 0 ? min : nullptr;
  packed.order = reinterpret_cast<int32_t*>(place(codes + scales + mins, plan.order));
  packed.bias = reinterpret_cast<float*>(place(codes + scales + mins + order, w.bias));
  return packed;
}

}  // namespace whippet::cpu
