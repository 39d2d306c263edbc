// Products of many rows: a chunk of columns of some panels is widened to floats in scratch that stays in the
// L2 cache, and tiles of rows stream past it; the sums of a chunk are carried in y.
#include "backend/cpu/linear_kernels.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

// What a tile works on: columns [begin, end).
struct Chunk {
  int32_t begin, end;
  const float* w;        // [panels][end - begin][16], values
  int64_t panel_stride;  // floats from one panel to the next
};

// Columns of a panel as floats into to [end - begin][16].
template <class Kind>
void widen(const LinearTask& task, int32_t panel, int32_t begin, int32_t end, float* to) {
  const auto* codes = panel_codes<Kind>(task, panel);
  for (int32_t c = begin; c < end; ++c, to += 16) store(to, Kind::column(codes, c));
}

// Adds n columns of x [kRows] and of w to the sums.
template <int kRows, int kPanels>
WH_SIMD void add_columns(const float* x, int64_t x_stride, const float* w, int64_t panel_stride, int32_t n,
                         Vec (&sums)[kRows][kPanels]) {
  for (int64_t c = 0; c < n; ++c) {
    Vec column[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) column[p] = load(w + p * panel_stride + c * 16);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vec each = broadcast(x[r * x_stride + c]);
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) sums[r][p] = fma(each, column[p], sums[r][p]);
    }
  }
}

template <int kRows, int kPanels>
void tile(const LinearTask& task, const Chunk& chunk, int32_t panel, const float* w, int32_t row) {
  const float* x = task.x + row * task.x_stride + chunk.begin;
  float* y = task.y + row * task.y_stride + panel * 16;
  Vec sums[kRows][kPanels];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const int valid = valid_outputs(task, panel + p);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      sums[r][p] =
          chunk.begin == 0 ? first_sum(task, panel + p) : load_n(y + r * task.y_stride + p * 16, valid);
  }
  add_columns<kRows, kPanels>(x, task.x_stride, w, chunk.panel_stride, chunk.end - chunk.begin, sums);
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const int valid = valid_outputs(task, panel + p);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) store_n(y + r * task.y_stride + p * 16, sums[r][p], valid);
  }
}

// The rows that fill no tile.
template <int kRows, int kPanels>
void last_tile(const LinearTask& task, const Chunk& chunk, int32_t panel, const float* w, int32_t row) {
  if (task.rows - row == kRows) return tile<kRows, kPanels>(task, chunk, panel, w, row);
  if constexpr (kRows > 1) last_tile<kRows - 1, kPanels>(task, chunk, panel, w, row);
}

template <int kPanels>
void tiles(const LinearTask& task, const Chunk& chunk, int32_t panel, const float* w) {
  int32_t row = 0;
  for (; row + kTileRows <= task.rows; row += kTileRows) tile<kTileRows, kPanels>(task, chunk, panel, w, row);
  last_tile<kTileRows - 1, kPanels>(task, chunk, panel, w, row);
}

template <class Kind>
void linear_many(const LinearTask& task, float* scratch) {
  for (int32_t first = task.panel_begin; first < task.panel_end; first += kLinearBlockPanels) {
    const int32_t count = smaller(kLinearBlockPanels, task.panel_end - first);
    for (int32_t begin = 0; begin < task.columns; begin += kLinearChunk) {
      Chunk chunk{begin, smaller(begin + kLinearChunk, task.columns), scratch, 0};
      chunk.panel_stride = static_cast<int64_t>(chunk.end - begin) * 16;
      if constexpr (__is_same(Kind, F32)) {  // already as it is wanted
        chunk.w = panel_codes<Kind>(task, first) + static_cast<int64_t>(begin) * 16;
        chunk.panel_stride = static_cast<int64_t>(task.columns) * 16;
      } else {
        for (int32_t p = 0; p < count; ++p)
          widen<Kind>(task, first + p, begin, chunk.end, scratch + p * chunk.panel_stride);
      }
      int32_t p = 0;
      for (; p + kTilePanels <= count; p += kTilePanels)
        tiles<kTilePanels>(task, chunk, first + p, chunk.w + p * chunk.panel_stride);
      if constexpr (kTilePanels > 1)
        for (; p < count; ++p) tiles<1>(task, chunk, first + p, chunk.w + p * chunk.panel_stride);
    }
  }
}

}  // namespace

void linear_many_f32(const LinearTask& task, float* scratch) { linear_many<F32>(task, scratch); }
void linear_many_f16(const LinearTask& task, float* scratch) { linear_many<F16>(task, scratch); }
void linear_many_bf16(const LinearTask& task, float* scratch) { linear_many<Bf16>(task, scratch); }

}  // namespace whippet::cpu::WHIPPET_ISA
