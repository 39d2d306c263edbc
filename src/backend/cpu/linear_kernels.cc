// Products with packed weights (pack.h). Few rows: weights go from memory through dequantisation straight
// into the sums. Many rows: some panels of a chunk of columns are dequantised into scratch that stays in the
// L2 cache, and tiles of rows stream past them; the sums of a chunk are carried in y. Both do the same
// arithmetic on an element in the same order: w = fma(code, scale, min), sum = fma(x, w, sum), columns
// rising.
#include "backend/cpu/kernel_functions.h"
#include "simd_convert.h"
#include "simd_math.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

WH_SIMD int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
WH_SIMD int32_t ceil_eighths(int32_t n) { return (n + 7) / 8; }

// One column of a panel.
struct F32 {
  static constexpr bool kGrouped = false, kNibbles = false;
  using Element = float;
  WH_SIMD Vec column(const float* panel, int64_t c) { return load(panel + c * 16); }
};
struct F16 {
  static constexpr bool kGrouped = false, kNibbles = false;
  using Element = uint16_t;
  WH_SIMD Vec column(const uint16_t* panel, int64_t c) { return load_f16(panel + c * 16, 16); }
};
struct Bf16 {
  static constexpr bool kGrouped = false, kNibbles = false;
  using Element = uint16_t;
  WH_SIMD Vec column(const uint16_t* panel, int64_t c) { return load_bf16(panel + c * 16, 16); }
};
struct Int8 {
  static constexpr bool kGrouped = true, kNibbles = false;
  using Element = int8_t;
  WH_SIMD Vec column(const int8_t* panel, int64_t c) { return load(panel + c * 16); }
};
struct Int4 {
  static constexpr bool kGrouped = true, kNibbles = true;
  using Element = uint32_t;
};

// Where a panel lies.
template <class Kind>
struct Panel {
  const typename Kind::Element* codes;
  const float* scale;
  const float* min;
};

template <class Kind>
WH_SIMD Panel<Kind> panel_at(const LinearTask& task, int32_t panel) {
  const auto* codes = static_cast<const typename Kind::Element*>(task.codes);
  if constexpr (!Kind::kGrouped) {
    return {codes + static_cast<int64_t>(panel) * task.columns * 16, nullptr, nullptr};
  } else {
    const int64_t groups = (task.columns + task.group - 1) / task.group;
    const int64_t rows = Kind::kNibbles ? groups * ceil_eighths(task.group) : task.columns;
    const int64_t scales = panel * groups * 16;
    return {codes + panel * rows * 16, task.scale + scales,
            task.min != nullptr ? task.min + scales : nullptr};
  }
}

WH_SIMD int32_t valid_outputs(const LinearTask& task, int32_t panel) {
  return smaller(16, task.out - panel * 16);
}

WH_SIMD Vec first_sum(const LinearTask& task, int32_t panel) {
  return task.bias != nullptr ? load_n(task.bias + panel * 16, valid_outputs(task, panel)) : zero();
}

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

// Nibble kIndex of the dwords q, as column c.
template <int kIndex, int kRows, int kPanels>
WH_SIMD void nibble_column(const LinearTask& task, int64_t c, const Codes (&q)[kPanels],
                           const Vec (&scale)[kPanels], const Vec (&min)[kPanels],
                           Vec (&sums)[kRows][kPanels]) {
  Vec w[kPanels];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) w[p] = fma(nibble<kIndex>(q[p]), scale[p], min[p]);
  accumulate<kRows, kPanels>(task, c, w, sums);
}

template <int kRows, int kPanels>
WH_SIMD void nibble_columns(const LinearTask& task, int64_t c, int32_t n, const Codes (&q)[kPanels],
                            const Vec (&scale)[kPanels], const Vec (&min)[kPanels],
                            Vec (&sums)[kRows][kPanels]) {
  nibble_column<0, kRows, kPanels>(task, c, q, scale, min, sums);
  if (n > 1) nibble_column<1, kRows, kPanels>(task, c + 1, q, scale, min, sums);
  if (n > 2) nibble_column<2, kRows, kPanels>(task, c + 2, q, scale, min, sums);
  if (n > 3) nibble_column<3, kRows, kPanels>(task, c + 3, q, scale, min, sums);
  if (n > 4) nibble_column<4, kRows, kPanels>(task, c + 4, q, scale, min, sums);
  if (n > 5) nibble_column<5, kRows, kPanels>(task, c + 5, q, scale, min, sums);
  if (n > 6) nibble_column<6, kRows, kPanels>(task, c + 6, q, scale, min, sums);
  if (n > 7) nibble_column<7, kRows, kPanels>(task, c + 7, q, scale, min, sums);
}

// Columns [c, c + n) of one group. at: where the group's dwords begin (int4 only).
template <class Kind, int kRows, int kPanels>
WH_SIMD void few_columns(const LinearTask& task, int64_t c, int32_t n, int64_t at,
                         const Panel<Kind> (&panels)[kPanels], const Vec (&scale)[kPanels],
                         const Vec (&min)[kPanels], Vec (&sums)[kRows][kPanels]) {
  if constexpr (Kind::kNibbles) {
    for (int32_t i = 0; i < n; i += 8, at += 16) {
      Codes q[kPanels];
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) q[p] = load_codes(panels[p].codes + at);
      if (n - i >= 8)
        nibble_columns<kRows, kPanels>(task, c + i, 8, q, scale, min, sums);
      else
        nibble_columns<kRows, kPanels>(task, c + i, n - i, q, scale, min, sums);
    }
  } else {
    for (int64_t end = c + n; c < end; ++c) {
      Vec w[kPanels];
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) {
        w[p] = Kind::column(panels[p].codes, c);
        if constexpr (Kind::kGrouped) w[p] = fma(w[p], scale[p], min[p]);
      }
      accumulate<kRows, kPanels>(task, c, w, sums);
    }
  }
}

template <class Kind, int kRows, int kPanels>
void few_rows_block(const LinearTask& task, int32_t panel) {
  Panel<Kind> panels[kPanels];
  Vec sums[kRows][kPanels], scale[kPanels], min[kPanels];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    panels[p] = panel_at<Kind>(task, panel + p);
    scale[p] = min[p] = zero();
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r][p] = first_sum(task, panel + p);
  }
  const int32_t step = Kind::kGrouped ? task.group : task.columns;
  for (int32_t c = 0, g = 0; c < task.columns; c += step, ++g) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels && Kind::kGrouped; ++p) {
      scale[p] = load(panels[p].scale + static_cast<int64_t>(g) * 16);
      if (panels[p].min != nullptr) min[p] = load(panels[p].min + static_cast<int64_t>(g) * 16);
    }
    const int64_t dwords = Kind::kNibbles ? static_cast<int64_t>(g) * ceil_eighths(task.group) * 16 : 0;
    few_columns<Kind, kRows, kPanels>(task, c, smaller(step, task.columns - c), dwords, panels, scale, min,
                                      sums);
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const int n = valid_outputs(task, panel + p);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) store_n(task.y + r * task.y_stride + (panel + p) * 16, sums[r][p], n);
  }
}

template <class Kind, int kRows>
void few_rows(const LinearTask& task) {
  constexpr int kPanels = few_panels(kRows);
  int32_t panel = task.panel_begin;
  for (; panel + kPanels <= task.panel_end; panel += kPanels)
    few_rows_block<Kind, kRows, kPanels>(task, panel);
  if constexpr (kPanels > 2)
    for (; panel + 2 <= task.panel_end; panel += 2) few_rows_block<Kind, kRows, 2>(task, panel);
  for (; panel < task.panel_end; ++panel) few_rows_block<Kind, kRows, 1>(task, panel);
}

// Columns [begin, end) of a panel into to [end - begin][16].
template <class Kind>
void dequantise(const LinearTask& task, const Panel<Kind>& panel, int32_t begin, int32_t end, float* to) {
  if constexpr (!Kind::kGrouped) {
    for (int32_t c = begin; c < end; ++c, to += 16) store(to, Kind::column(panel.codes, c));
  } else {
    for (int32_t c = begin; c < end;) {
      const int32_t g = c / task.group;
      const int32_t stop = smaller(end, (g + 1) * task.group);
      const Vec scale = load(panel.scale + static_cast<int64_t>(g) * 16);
      const Vec min = panel.min != nullptr ? load(panel.min + static_cast<int64_t>(g) * 16) : zero();
      if constexpr (Kind::kNibbles) {
        // Chunks begin at the start of a group or a multiple of 8 into it, so dwords are never cut.
        const int32_t in_group = c - g * task.group;
        const uint32_t* dwords =
            panel.codes + (static_cast<int64_t>(g) * ceil_eighths(task.group) + in_group / 8) * 16;
        for (; c < stop; c += 8, dwords += 16, to += 128) {
          const Codes q = load_codes(dwords);
          const int32_t n = stop - c;
          store(to, fma(nibble<0>(q), scale, min));
          if (n > 1) store(to + 16, fma(nibble<1>(q), scale, min));
          if (n > 2) store(to + 32, fma(nibble<2>(q), scale, min));
          if (n > 3) store(to + 48, fma(nibble<3>(q), scale, min));
          if (n > 4) store(to + 64, fma(nibble<4>(q), scale, min));
          if (n > 5) store(to + 80, fma(nibble<5>(q), scale, min));
          if (n > 6) store(to + 96, fma(nibble<6>(q), scale, min));
          if (n > 7) store(to + 112, fma(nibble<7>(q), scale, min));
          if (n < 8) to += 16 * (n - 8);
        }
        c = stop;
      } else {
        for (; c < stop; ++c, to += 16) store(to, fma(Kind::column(panel.codes, c), scale, min));
      }
    }
  }
}

// Adds n columns of x and of panels (panel_stride floats apart) to the sums of some rows.
template <int kRows, int kPanels>
void tile(const LinearTask& task, int32_t panel, const float* x, const float* w, int64_t panel_stride,
          int32_t n, float* y, bool begins) {
  Vec sums[kRows][kPanels];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const Vec start = begins ? first_sum(task, panel + p) : zero();
    const int valid = valid_outputs(task, panel + p);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      sums[r][p] = begins ? start : load_n(y + r * task.y_stride + p * 16, valid);
  }
  for (int64_t c = 0; c < n; ++c) {
    Vec column[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) column[p] = load(w + p * panel_stride + c * 16);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vec each = broadcast(x[r * task.x_stride + c]);
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) sums[r][p] = fma(each, column[p], sums[r][p]);
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
void last_tile(const LinearTask& task, int32_t rows, int32_t panel, const float* x, const float* w,
               int64_t panel_stride, int32_t n, float* y, bool begins) {
  if (rows == kRows) return tile<kRows, kPanels>(task, panel, x, w, panel_stride, n, y, begins);
  if constexpr (kRows > 1) last_tile<kRows - 1, kPanels>(task, rows, panel, x, w, panel_stride, n, y, begins);
}

template <int kPanels>
void tiles(const LinearTask& task, int32_t panel, const float* x, const float* w, int64_t panel_stride,
           int32_t n, bool begins) {
  int32_t r = 0;
  float* y = task.y + panel * 16;
  for (; r + kTileRows <= task.rows; r += kTileRows)
    tile<kTileRows, kPanels>(task, panel, x + r * task.x_stride, w, panel_stride, n, y + r * task.y_stride,
                             begins);
  if constexpr (kTileRows > 1)
    last_tile<kTileRows - 1, kPanels>(task, task.rows - r, panel, x + r * task.x_stride, w, panel_stride, n,
                                      y + r * task.y_stride, begins);
}

// Columns from one chunk to the next: whole groups, or multiples of 8 within one.
int32_t chunk_end(const LinearTask& task, int32_t begin) {
  if (task.group == 0) return smaller(begin + kLinearChunk, task.columns);
  if (task.group <= kLinearChunk)
    return smaller(begin + kLinearChunk / task.group * task.group, task.columns);
  return smaller(begin + kLinearChunk, smaller((begin / task.group + 1) * task.group, task.columns));
}

template <class Kind>
void many_rows(const LinearTask& task, float* scratch) {
  for (int32_t panel = task.panel_begin; panel < task.panel_end; panel += kLinearBlockPanels) {
    const int32_t count = smaller(kLinearBlockPanels, task.panel_end - panel);
    for (int32_t begin = 0, end; begin < task.columns; begin = end) {
      end = chunk_end(task, begin);
      const float* w = scratch;
      int64_t stride = static_cast<int64_t>(end - begin) * 16;
      if constexpr (__is_same(Kind, F32)) {  // already as it is wanted
        w = panel_at<Kind>(task, panel).codes + static_cast<int64_t>(begin) * 16;
        stride = static_cast<int64_t>(task.columns) * 16;
      } else {
        for (int32_t p = 0; p < count; ++p)
          dequantise<Kind>(task, panel_at<Kind>(task, panel + p), begin, end, scratch + p * stride);
      }
      int32_t p = 0;
      for (; p + kTilePanels <= count; p += kTilePanels)
        tiles<kTilePanels>(task, panel + p, task.x + begin, w + p * stride, stride, end - begin, begin == 0);
      if constexpr (kTilePanels > 1)
        for (; p < count; ++p)
          tiles<1>(task, panel + p, task.x + begin, w + p * stride, stride, end - begin, begin == 0);
    }
  }
}

template <class Kind, int kRows>
void few_rows_of(const LinearTask& task) {
  if constexpr (kRows > 0) {
    if (task.rows == kRows)
      few_rows<Kind, kRows>(task);
    else
      few_rows_of<Kind, kRows - 1>(task);
  }
}

template <class Kind>
void linear(const LinearTask& task, float* scratch) {
  if (task.rows > kFewRows)
    many_rows<Kind>(task, scratch);
  else
    few_rows_of<Kind, kFewRows>(task);
}

}  // namespace

void linear_f32(const LinearTask& task, float* scratch) { linear<F32>(task, scratch); }
void linear_f16(const LinearTask& task, float* scratch) { linear<F16>(task, scratch); }
void linear_bf16(const LinearTask& task, float* scratch) { linear<Bf16>(task, scratch); }
void linear_int8(const LinearTask& task, float* scratch) { linear<Int8>(task, scratch); }
void linear_int4(const LinearTask& task, float* scratch) { linear<Int4>(task, scratch); }

}  // namespace whippet::cpu::WHIPPET_ISA
