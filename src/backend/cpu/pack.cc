#include "backend/cpu/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "backend/cpu/kernels.h"
#include "backend/cpu/packed_layout.h"
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
// scale. Pieces of the only group may differ.
int32_t even_piece(int32_t group, bool single) {
  if (single) return align_up(ceil_div(group, ceil_div(group, kMaxGroup)), kGroupStep);
  int32_t piece = std::min(group, kMaxGroup);
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

// How codes and factors are kept.
struct Form {
  LinearKind kind = LinearKind::kF32;
  bool pairs = false;
  int32_t code_offset = 0;
  DType scale_type = DType::kF32, min_type = DType::kF32;
  bool has_min = false;
};

bool fits_half(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return f16_to_f32(f32_to_f16(value)) == value; });
}

Form choose_form(const CanonicalLinear& w, LinearKind kind, bool pairs) {
  Form form;
  form.kind = kind;
  form.pairs = kind == LinearKind::kBF16 && pairs;
  if (kind != LinearKind::kInt8 && kind != LinearKind::kInt4) return form;
  form.has_min = !w.min.empty();
  if (kind == LinearKind::kInt8) {
    form.code_offset = 128;
  } else if (form.has_min) {  // symmetric 4-bit formats: code - 8
    size_t at = 0;
    while (at < w.min.size() && w.min[at] == -8 * w.scale[at]) ++at;
    form.has_min = at < w.min.size();
    form.code_offset = form.has_min ? 0 : 8;
  }
  if (fits_half(w.scale)) form.scale_type = DType::kF16;
  if (form.has_min && fits_half(w.min)) form.min_type = DType::kF16;
  return form;
}

// convert(index of a weight) for every weight, [columns][16] or in pairs of columns.
template <class T, class Convert>
void pack_values(const CanonicalLinear& w, const Plan& plan, bool pairs, int32_t panel, T* to,
                 const Convert& convert) {
  const int32_t step = pairs ? 2 : 1;
  for_columns(w, plan, panel, [&](int32_t c, int32_t i, int32_t first, int32_t rows) {
    T* column = to + static_cast<size_t>(c / step * step) * kPanelRows + c % step;
    for (int32_t r = 0; r < rows; ++r) column[r * step] = convert(first + r, i);
  });
}

uint8_t read_byte(const CanonicalLinear& w, int32_t o, int32_t i) {
  return read_code<uint8_t>(w, static_cast<size_t>(o) * static_cast<size_t>(w.in) + static_cast<size_t>(i));
}

void pack_bytes(const CanonicalLinear& w, const Plan& plan, int32_t panel, uint8_t* to) {
  const int32_t group_columns = align_up(plan.group, kGroupStep);
  for_columns(w, plan, panel, [&](int32_t c, int32_t i, int32_t first, int32_t rows) {
    const int32_t at = c / plan.group * group_columns + c % plan.group;
    uint8_t* column = to + static_cast<size_t>(at / 4) * 64 + at % 4;
    for (int32_t r = 0; r < rows; ++r) column[4 * r] = static_cast<uint8_t>(read_byte(w, first + r, i) ^ 128);
  });
}

void pack_nibbles(const CanonicalLinear& w, const Plan& plan, int32_t panel, uint8_t* to) {
  const int32_t group_columns = align_up(plan.group, kGroupStep);
  for_columns(w, plan, panel, [&](int32_t c, int32_t i, int32_t first, int32_t rows) {
    const int32_t at = c / plan.group * group_columns + c % plan.group;
    uint8_t* column = to + static_cast<size_t>(at / 8) * 64 + at % 4;
    const int shift = at % 8 < 4 ? 0 : 4;
    for (int32_t r = 0; r < rows; ++r)
      column[4 * r] = static_cast<uint8_t>(column[4 * r] | (read_byte(w, first + r, i) & 15) << shift);
  });
}

void pack_panel(const CanonicalLinear& w, const Plan& plan, const Form& form, int32_t panel, std::byte* to) {
  const auto value = [&](int32_t o, int32_t i) { return weight_value(w, o, i); };
  const auto same_bits = [&](int32_t o, int32_t i) {
    return read_code<uint16_t>(w,
                               static_cast<size_t>(o) * static_cast<size_t>(w.in) + static_cast<size_t>(i));
  };
  auto* bits = reinterpret_cast<uint16_t*>(to);
  switch (form.kind) {
    case LinearKind::kF32:
      return pack_values(w, plan, false, panel, reinterpret_cast<float*>(to), value);
    case LinearKind::kF16:
      if (w.codes_type == Codes::kF16) return pack_values(w, plan, false, panel, bits, same_bits);
      return pack_values(w, plan, false, panel, bits,
                         [&](int32_t o, int32_t i) { return f32_to_f16(value(o, i)); });
    case LinearKind::kBF16:
      if (w.codes_type == Codes::kBF16) return pack_values(w, plan, form.pairs, panel, bits, same_bits);
      return pack_values(w, plan, form.pairs, panel, bits,
                         [&](int32_t o, int32_t i) { return f32_to_bf16(value(o, i)); });
    case LinearKind::kInt8:
      return pack_bytes(w, plan, panel, reinterpret_cast<uint8_t*>(to));
    case LinearKind::kInt4:
      return pack_nibbles(w, plan, panel, reinterpret_cast<uint8_t*>(to));
  }
}

// From [out, groups] to [panel][groups][16] of the type.
void pack_factors(const std::vector<float>& from, const CanonicalLinear& w, const Plan& plan, int32_t panel,
                  DType type, std::byte* to) {
  const size_t groups = plan.source.size();
  const int32_t rows = std::min(kPanelRows, w.out - panel * kPanelRows);
  for (int32_t r = 0; r < rows; ++r) {
    for (size_t g = 0; g < groups; ++g) {
      const size_t at = (static_cast<size_t>(panel) * groups + g) * kPanelRows + static_cast<size_t>(r);
      const float factor =
          from[static_cast<size_t>(panel * kPanelRows + r) * w.num_groups() + plan.source[g]];
      if (type == DType::kF16)
        reinterpret_cast<uint16_t*>(to)[at] = f32_to_f16(factor);
      else
        reinterpret_cast<float*>(to)[at] = factor;
    }
  }
}

}  // namespace

Result<LinearWeight> pack_linear(const CanonicalLinear& w, ComputeType compute, bool pairs,
                                 ThreadPool& pool) {
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

  const Form form = choose_form(w, packed.kind, pairs);
  packed.code_offset = form.code_offset;
  packed.scale_type = form.scale_type;
  packed.min_type = form.min_type;
  packed.input_type = quantised ? DType::kI8 : form.pairs ? DType::kBF16 : DType::kF32;

  const PackedLayout layout =
      packed_layout(packed, form.pairs, form.has_min, !plan.order.empty(), !w.bias.empty());
  packed.storage = Buffer::host(layout.bytes);
  packed.bytes = layout.order;

  auto* base = packed.storage.as<std::byte>();
  std::byte *scale = base + layout.scale, *min = base + layout.min;
  pool.run(num_panels(packed), [&](int32_t panel, int32_t) {
    pack_panel(w, plan, form, panel, base + static_cast<size_t>(panel) * layout.panel_bytes);
    if (quantised) pack_factors(w.scale, w, plan, panel, form.scale_type, scale);
    if (form.has_min) pack_factors(w.min, w, plan, panel, form.min_type, min);
  });
  const auto place = [&](size_t at, const auto& values) {
    if (!values.empty()) std::memcpy(base + at, values.data(), values.size() * 4);
    return values.empty() ? nullptr : base + at;
  };
  packed.codes = base;
  packed.scale = quantised ? scale : nullptr;
  packed.min = form.has_min ? min : nullptr;
  packed.order = reinterpret_cast<int32_t*>(place(layout.order, plan.order));
  packed.bias = reinterpret_cast<float*>(place(layout.bias, w.bias));
  return packed;
}

}  // namespace whippet::cpu
