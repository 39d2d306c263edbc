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

}  // namespace whippet::cpu::WHIPPET_ISA
