// Products of few rows: weights go from memory straight into the sums.
#include "backend/cpu/linear_kernels.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

template <int kRows, int kPanels>
WH_SIMD void accumulate(const LinearTask& task, int64_t c, const Vec (&w)[kPanels],
                        Vec (&sums)[kRows][kPanels]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const Vec x = broadcast(task.x[r * task.x_stride + c]);
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) sums[r][p] = fma(x, w[p], sums[r][p]);
  }
}

template <class Kind, int kRows, int kPanels>
WH_SIMD void add_columns(const LinearTask& task, const typename Kind::Element* const (&codes)[kPanels],
                         int64_t c, int64_t end, Vec (&sums)[kRows][kPanels]) {
  for (; c < end; ++c) {
    Vec w[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) w[p] = Kind::column(codes[p], c);
    accumulate<kRows, kPanels>(task, c, w, sums);
  }
}

// Nibble kIndex of the dwords q is column c. Nibbles are not shifted down: the inputs are scaled instead.
template <int kIndex, int kRows, int kPanels>
WH_SIMD void add_nibbles(const LinearTask& task, int64_t c, const Codes (&q)[kPanels],
                         Vec (&parts)[kRows][kPanels]) {
  Vec w[kPanels];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) w[p] = nibble_in_place<kIndex>(q[p]);
  accumulate<kRows, kPanels>(task, c + kIndex, w, parts);
}

// Columns [c, c + n) of one group, whose dwords begin at `at`.
template <int kRows, int kPanels>
WH_SIMD void add_dwords(const LinearTask& task, const uint32_t* const (&codes)[kPanels], int64_t c, int32_t n,
                        int64_t at, Vec (&parts)[kRows][kPanels]) {
  for (; n > 0; n -= 8, c += 8, at += 16) {
    Codes q[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) q[p] = load_codes(codes[p] + at);
    add_nibbles<0, kRows, kPanels>(task, c, q, parts);
    if (n > 1) add_nibbles<1, kRows, kPanels>(task, c, q, parts);
    if (n > 2) add_nibbles<2, kRows, kPanels>(task, c, q, parts);
    if (n > 3) add_nibbles<3, kRows, kPanels>(task, c, q, parts);
    if (n > 4) add_nibbles<4, kRows, kPanels>(task, c, q, parts);
    if (n > 5) add_nibbles<5, kRows, kPanels>(task, c, q, parts);
    if (n > 6) add_nibbles<6, kRows, kPanels>(task, c, q, parts);
    if (n > 7) add_nibbles<7, kRows, kPanels>(task, c, q, parts);
  }
}

template <class Kind, int kRows, int kPanels>
WH_SIMD void add_groups(const LinearTask& task, int32_t panel,
                        const typename Kind::Element* const (&codes)[kPanels], Vec (&sums)[kRows][kPanels]) {
  for (int32_t c = 0, g = 0; c < task.columns; c += task.group, ++g) {
    const int32_t n = smaller(task.group, task.columns - c);
    Vec parts[kRows][kPanels];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) parts[r][p] = zero();
    if constexpr (Kind::kNibbles)
      add_dwords<kRows, kPanels>(task, codes, c, n, static_cast<int64_t>(g) * ceil_eighths(task.group) * 16,
                                 parts);
    else
      add_columns<Kind, kRows, kPanels>(task, codes, c, c + n, parts);
    end_group<kRows, kPanels>(task, panel, g, task.x_sums, parts, sums);
  }
}

template <class Kind, int kRows, int kPanels>
void panels_at_once(const LinearTask& task, int32_t panel) {
  const typename Kind::Element* codes[kPanels];
  Vec sums[kRows][kPanels];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    codes[p] = panel_codes<Kind>(task, panel + p);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r][p] = first_sum(task, panel + p);
  }
  if constexpr (Kind::kCoded)
    add_groups<Kind, kRows, kPanels>(task, panel, codes, sums);
  else
    add_columns<Kind, kRows, kPanels>(task, codes, 0, task.columns, sums);
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const int n = valid_outputs(task, panel + p);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) store_n(task.y + r * task.y_stride + (panel + p) * 16, sums[r][p], n);
  }
}

template <class Kind, int kRows>
void rows_at_once(const LinearTask& task) {
  constexpr int kPanels = few_panels(kRows);
  int32_t panel = task.panel_begin;
  for (; panel + kPanels <= task.panel_end; panel += kPanels)
    panels_at_once<Kind, kRows, kPanels>(task, panel);
  if constexpr (kPanels > 2)
    for (; panel + 2 <= task.panel_end; panel += 2) panels_at_once<Kind, kRows, 2>(task, panel);
  for (; panel < task.panel_end; ++panel) panels_at_once<Kind, kRows, 1>(task, panel);
}

template <class Kind, int kRows = kFewRows>
void linear_few(const LinearTask& task) {
  if (task.rows == kRows) return rows_at_once<Kind, kRows>(task);
  if constexpr (kRows > 1) linear_few<Kind, kRows - 1>(task);
}

}  // namespace

void linear_few_f32(const LinearTask& task) { linear_few<F32>(task); }
void linear_few_f16(const LinearTask& task) { linear_few<F16>(task); }
void linear_few_bf16(const LinearTask& task) { linear_few<Bf16>(task); }
void linear_few_int8(const LinearTask& task) { linear_few<Int8>(task); }
void linear_few_int4(const LinearTask& task) { linear_few<Int4>(task); }

void group_sums(const float* x, int32_t columns, int32_t group, float* sums) {
  for (int32_t begin = 0; begin < columns; begin += group) {
    const int32_t end = smaller(columns, begin + group);
    Vec total = zero();
    int32_t c = begin;
    for (; c + 16 <= end; c += 16) total = total + load(x + c);
    if (c < end) total = total + load_n(x + c, end - c);
    *sums++ = sum(total);
  }
}

void nibble_inputs(const float* x, int32_t columns, int32_t group, float* out) {
  // Column 8i + j of a group meets 16^j times its code; nibble 7 is shifted down after all, for the sign's
  // sake.
  alignas(64) static constexpr float kFactors[16] = {
      1, 0x1p-4f, 0x1p-8f, 0x1p-12f, 0x1p-16f, 0x1p-20f, 0x1p-24f, 1,
      1, 0x1p-4f, 0x1p-8f, 0x1p-12f, 0x1p-16f, 0x1p-20f, 0x1p-24f, 1};
  const Vec factors = load(kFactors);
  for (int32_t begin = 0; begin < columns; begin += group) {
    const int32_t end = smaller(columns, begin + group);
    int32_t c = begin;
    for (; c + 16 <= end; c += 16) store(out + c, load(x + c) * factors);
    if (c < end) store_n(out + c, load_n(x + c, end - c) * factors, end - c);
  }
}

}  // namespace whippet::cpu::WHIPPET_ISA
