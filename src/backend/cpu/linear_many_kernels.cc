// Products of many rows: a chunk of columns of some panels is widened to floats in scratch that stays in the
// L2 cache, and tiles of rows stream past it; the sums of a chunk are carried in y. Scales are applied in the
// tiles.
#include "backend/cpu/linear_kernels.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

// What a tile works on: columns [begin, end), whole groups where there are groups.
struct Chunk {
  int32_t begin, end;
  const float* w;        // [panels][end - begin][16], values or codes
  int64_t panel_stride;  // floats from one panel to the next
};

// Columns of a panel as floats into to [end - begin][16].
template <class Kind>
void widen(const LinearTask& task, int32_t panel, int32_t begin, int32_t end, float* to) {
  const auto* codes = panel_codes<Kind>(task, panel);
  if constexpr (!Kind::kNibbles) {
    for (int32_t c = begin; c < end; ++c, to += 16) store(to, Kind::column(codes, c));
  } else {
    for (int32_t c = begin; c < end; c += task.group) {
      const uint32_t* dwords = codes + static_cast<int64_t>(c / task.group) * ceil_eighths(task.group) * 16;
      int32_t n = smaller(task.group, end - c);
      for (; n > 0; n -= 8, dwords += 16, to += 128) {
        const Codes q = load_codes(dwords);
        store(to, nibble<0>(q));
        if (n > 1) store(to + 16, nibble<1>(q));
        if (n > 2) store(to + 32, nibble<2>(q));
        if (n > 3) store(to + 48, nibble<3>(q));
        if (n > 4) store(to + 64, nibble<4>(q));
        if (n > 5) store(to + 80, nibble<5>(q));
        if (n > 6) store(to + 96, nibble<6>(q));
        if (n > 7) store(to + 112, nibble<7>(q));
      }
      to += 16 * n;  // back to the end of a group that is no multiple of 8
    }
  }
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

template <bool kCoded, int kRows, int kPanels>
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
  const int32_t n = chunk.end - chunk.begin;
  if constexpr (!kCoded) {
    add_columns<kRows, kPanels>(x, task.x_stride, w, chunk.panel_stride, n, sums);
  } else {
    const float* x_sums = task.x_sums;
    if (x_sums != nullptr) x_sums += row * static_cast<int64_t>(num_groups(task));
    for (int32_t c = 0, g = chunk.begin / task.group; c < n; c += task.group, ++g) {
      Vec parts[kRows][kPanels];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
        for (int p = 0; p < kPanels; ++p) parts[r][p] = zero();
      add_columns<kRows, kPanels>(x + c, task.x_stride, w + static_cast<int64_t>(c) * 16, chunk.panel_stride,
                                  smaller(task.group, n - c), parts);
      end_group<kRows, kPanels>(task, panel, g, x_sums, parts, sums);
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
template <bool kCoded, int kRows, int kPanels>
void last_tile(const LinearTask& task, const Chunk& chunk, int32_t panel, const float* w, int32_t row) {
  if (task.rows - row == kRows) return tile<kCoded, kRows, kPanels>(task, chunk, panel, w, row);
  if constexpr (kRows > 1) last_tile<kCoded, kRows - 1, kPanels>(task, chunk, panel, w, row);
}

template <bool kCoded, int kPanels>
void tiles(const LinearTask& task, const Chunk& chunk, int32_t panel, const float* w) {
  int32_t row = 0;
  for (; row + kTileRows <= task.rows; row += kTileRows)
    tile<kCoded, kTileRows, kPanels>(task, chunk, panel, w, row);
  last_tile<kCoded, kTileRows - 1, kPanels>(task, chunk, panel, w, row);
}

template <class Kind>
void linear_many(const LinearTask& task, float* scratch) {
  const int32_t step = Kind::kCoded ? kLinearChunk / task.group * task.group : kLinearChunk;
  for (int32_t first = task.panel_begin; first < task.panel_end; first += kLinearBlockPanels) {
    const int32_t count = smaller(kLinearBlockPanels, task.panel_end - first);
    for (int32_t begin = 0; begin < task.columns; begin += step) {
      Chunk chunk{begin, smaller(begin + step, task.columns), scratch, 0};
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
        tiles<Kind::kCoded, kTilePanels>(task, chunk, first + p, chunk.w + p * chunk.panel_stride);
      if constexpr (kTilePanels > 1)
        for (; p < count; ++p)
          tiles<Kind::kCoded, 1>(task, chunk, first + p, chunk.w + p * chunk.panel_stride);
    }
  }
}

}  // namespace

void linear_many_f32(const LinearTask& task, float* scratch) { linear_many<F32>(task, scratch); }
void linear_many_f16(const LinearTask& task, float* scratch) { linear_many<F16>(task, scratch); }
void linear_many_bf16(const LinearTask& task, float* scratch) { linear_many<Bf16>(task, scratch); }
void linear_many_int8(const LinearTask& task, float* scratch) { linear_many<Int8>(task, scratch); }
void linear_many_int4(const LinearTask& task, float* scratch) { linear_many<Int4>(task, scratch); }

}  // namespace whippet::cpu::WHIPPET_ISA
