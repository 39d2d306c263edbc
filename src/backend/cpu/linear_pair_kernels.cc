// Products of bf16 weights with inputs rounded to bf16, two columns at a time, where there is an instruction
// for it: sum = bias, then sum = dot(w, x, sum) for rising pairs of columns, for any number of rows and
// panels. Many rows pass a stretch of columns that stays in the first cache; their sums are carried in y.
#include "backend/cpu/kernel_functions.h"
#include "backend/cpu/pair_products.h"
#include "simd_math.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int32_t kStretchPairs = 64;  // of kPairPanels panels: 16 KiB

WH_SIMD int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
WH_SIMD int32_t valid_outputs(const PairTask& task, int32_t panel) {
  return smaller(16, task.out - panel * 16);
}

// Pairs [begin, end) of kRows rows from `row` and kPanels panels from `panel`.
template <int kRows, int kPanels>
void tile(const PairTask& task, int32_t panel, int32_t row, int32_t begin, int32_t end) {
  const int64_t panel_stride = static_cast<int64_t>(task.pairs) * 16;
  const uint32_t* codes = task.codes + panel * panel_stride;
  const uint32_t* x = task.x + static_cast<int64_t>(row) * task.pairs;
  float* y = task.y + row * task.y_stride + panel * 16;
  Vec sums[kRows][kPanels];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const int valid = valid_outputs(task, panel + p);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      sums[r][p] = begin > 0              ? load_n(y + r * task.y_stride + p * 16, valid)
                   : task.bias != nullptr ? load_n(task.bias + (panel + p) * 16, valid)
                                          : zero();
  }
  for (int64_t c = begin; c < end; ++c) {
    Pairs w[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) w[p] = load_pairs(codes + p * panel_stride + c * 16);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Pairs each = broadcast_pair(x[static_cast<int64_t>(r) * task.pairs + c]);
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) sums[r][p] = dot(w[p], each, sums[r][p]);
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const int valid = valid_outputs(task, panel + p);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) store_n(y + r * task.y_stride + p * 16, sums[r][p], valid);
  }
}

// The rows that fill no tile.
template <int kRows, int kPanels>
void last_tile(const PairTask& task, int32_t panel, int32_t row, int32_t begin, int32_t end) {
  if (task.rows - row == kRows) return tile<kRows, kPanels>(task, panel, row, begin, end);
  if constexpr (kRows > 1) last_tile<kRows - 1, kPanels>(task, panel, row, begin, end);
}

template <int kPanels>
void panels(const PairTask& task, int32_t panel) {
  const int32_t step = task.rows <= kPairRows ? task.pairs : kStretchPairs;
  for (int32_t begin = 0; begin < task.pairs; begin += step) {
    const int32_t end = smaller(task.pairs, begin + step);
    int32_t row = 0;
    for (; row + kPairRows <= task.rows; row += kPairRows)
      tile<kPairRows, kPanels>(task, panel, row, begin, end);
    last_tile<kPairRows - 1, kPanels>(task, panel, row, begin, end);
  }
}

}  // namespace

extern const int32_t kPairPanelsAtOnce;
const int32_t kPairPanelsAtOnce = kPairPanels;

void linear_pairs(const PairTask& task) {
  int32_t panel = task.panel_begin;
  for (; panel + kPairPanels <= task.panel_end; panel += kPairPanels) panels<kPairPanels>(task, panel);
  for (; panel < task.panel_end; ++panel) panels<1>(task, panel);
}

double pair_burst(int64_t rounds, float* sink) {
  Vec sums[kProbeChains];
  for (int i = 0; i < kProbeChains; ++i) sums[i] = broadcast(static_cast<float>(i));
  const Pairs w = broadcast_pair(0x3c003c00), x = broadcast_pair(0x3b803b80);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kProbeChains; ++i) sums[i] = dot(w, x, sums[i]);
  }
  Vec all = zero();
  for (const Vec& each : sums) all = all + each;
  *sink = sum(all);
  return 2.0 * 32 * kProbeChains * static_cast<double>(rounds);
}

}  // namespace whippet::cpu::WHIPPET_ISA
