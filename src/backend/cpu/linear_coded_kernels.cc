// Products of codes with inputs rounded to 16 bits, since 8 move the answers of small models. Sums over a
// group are exact: |code - offset| <= 128, |q| <= 32767 and 256 of them stay below 2^31. On every instruction
// set, for any number of rows and panels, an output is
//   sum = bias, then for rising groups:
//     sum = fma(float(start + sum of code * q), x scale * scale, sum)
//     sum = fma(x sum, min, sum) where there is a min
// Many rows pass a stretch of groups that stays in the first cache; their sums are carried in y.
#include "backend/cpu/kernel_functions.h"
#include "simd_convert.h"
#include "simd_dot.h"
#include "simd_math.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

constexpr int32_t kStretchBytes = 16 << 10;  // of codes in a tile's panels
constexpr float kInputSteps = 32767;         // from 0 to the largest input of a group

WH_SIMD int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
WH_SIMD int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }

struct Int8 {
  static constexpr int kBits = 8;
};
struct Int4 {  // byte 4o + j of 64: column j of output o in the lower half, column 4 + j in the upper
  static constexpr int kBits = 4;
};

template <class Kind>
WH_SIMD int64_t group_bytes(const CodedTask& task) {
  return task.group_columns * (2 * Kind::kBits);
}

// Two columns, those that lie at bit kShift of the shorts.
template <class Kind, int kShift, int kRows, int kPanels>
WH_SIMD void add_products(const Shorts (&codes)[kPanels], const int16_t* x, int64_t x_stride,
                          Ints (&parts)[kRows][kPanels]) {
  Shorts w[kPanels];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) w[p] = field<kShift, Kind::kBits>(codes[p]);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const Shorts two = broadcast_pair(x + r * x_stride);
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) parts[r][p] = dot(w[p], two, parts[r][p]);
  }
}

// All columns of a group.
template <class Kind, int kRows, int kPanels>
WH_SIMD void add_group(const uint8_t* codes, int64_t panel_stride, int32_t columns, const int16_t* x,
                       int64_t x_stride, Ints (&parts)[kRows][kPanels]) {
  constexpr int kStep = 32 / Kind::kBits;
  for (int32_t c = 0; c < columns; c += kStep, codes += 64, x += kStep) {
    Shorts w[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) w[p] = load_codes(codes + p * panel_stride);
    add_products<Kind, 0, kRows, kPanels>(w, x, x_stride, parts);
    add_products<Kind, 8, kRows, kPanels>(w, x + 2, x_stride, parts);
    if constexpr (Kind::kBits == 4) {
      add_products<Kind, 4, kRows, kPanels>(w, x + 4, x_stride, parts);
      add_products<Kind, 12, kRows, kPanels>(w, x + 6, x_stride, parts);
    }
  }
}

WH_SIMD Vec load_factor(const void* factors, bool half, int64_t at) {
  return half ? load_f16(static_cast<const uint16_t*>(factors) + at, 16)
              : load(static_cast<const float*>(factors) + at);
}

// The panels of a tile: first, first + step, ...
struct Panels {
  int32_t first, step;
  int32_t operator[](int p) const { return first + p * step; }
};

template <int kRows, int kPanels>
WH_SIMD void end_group(const CodedTask& task, const Panels& panels, int32_t g, const InputGroup* inputs,
                       const Ints (&parts)[kRows][kPanels], Vec (&sums)[kRows][kPanels]) {
  const int64_t groups = task.groups;
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const int64_t at = (panels[p] * groups + g) * 16;
    const Vec scale = load_factor(task.scale, task.half_scale, at);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      sums[r][p] = fma(to_float(parts[r][p]), broadcast(inputs[groups * r].scale) * scale, sums[r][p]);
    if (task.min == nullptr) continue;
    const Vec min = load_factor(task.min, task.half_min, at);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r][p] = fma(broadcast(inputs[groups * r].sum), min, sums[r][p]);
  }
}

WH_SIMD int32_t valid_outputs(const CodedTask& task, int32_t panel) {
  return smaller(16, task.out - panel * 16);
}

// Groups [begin, end) of kRows rows from `row` and these panels.
template <class Kind, int kRows, int kPanels>
void tile(const CodedTask& task, const Panels& panels, int32_t row, int32_t begin, int32_t end) {
  const int64_t bytes = group_bytes<Kind>(task), panel_bytes = bytes * task.groups;
  const int64_t panel_stride = panels.step * panel_bytes;
  const int64_t x_stride = static_cast<int64_t>(task.groups) * task.group_columns;
  const uint8_t* codes = task.codes + panels.first * panel_bytes + begin * bytes;
  const int16_t* x = task.x + row * x_stride + static_cast<int64_t>(begin) * task.group_columns;
  const InputGroup* inputs = task.inputs + static_cast<int64_t>(row) * task.groups + begin;
  float* y = task.y + row * task.y_stride;
  Vec sums[kRows][kPanels];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const int valid = valid_outputs(task, panels[p]);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      sums[r][p] = begin > 0              ? load_n(y + r * task.y_stride + panels[p] * 16, valid)
                   : task.bias != nullptr ? load_n(task.bias + panels[p] * 16, valid)
                                          : zero();
  }
  for (int32_t g = begin; g < end; ++g, codes += bytes, x += task.group_columns, ++inputs) {
    Ints parts[kRows][kPanels];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p)
        parts[r][p] = ints(inputs[static_cast<int64_t>(task.groups) * r].start);
    add_group<Kind, kRows, kPanels>(codes, panel_stride, task.group_columns, x, x_stride, parts);
    end_group<kRows, kPanels>(task, panels, g, inputs, parts, sums);
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const int valid = valid_outputs(task, panels[p]);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) store_n(y + r * task.y_stride + panels[p] * 16, sums[r][p], valid);
  }
}

// The rows that fill no tile.
template <class Kind, int kRows, int kPanels>
void last_tile(const CodedTask& task, const Panels& panels, int32_t row, int32_t begin, int32_t end) {
  if (task.rows - row == kRows) return tile<Kind, kRows, kPanels>(task, panels, row, begin, end);
  if constexpr (kRows > 1) last_tile<Kind, kRows - 1, kPanels>(task, panels, row, begin, end);
}

template <class Kind, int kPanels>
void panels_of_many(const CodedTask& task, int32_t panel) {
  const Panels panels{panel, 1};
  const auto stretch_groups = static_cast<int32_t>(kStretchBytes / (group_bytes<Kind>(task) * kPanels));
  const int32_t step = larger(1, stretch_groups);
  for (int32_t begin = 0; begin < task.groups; begin += step) {
    const int32_t end = smaller(task.groups, begin + step);
    int32_t row = 0;
    for (; row + kDotRows <= task.rows; row += kDotRows)
      tile<Kind, kDotRows, kPanels>(task, panels, row, begin, end);
    if constexpr (kDotRows > 1) last_tile<Kind, kDotRows - 1, kPanels>(task, panels, row, begin, end);
  }
}

// A tile takes panels that lie far apart, so that each of them and its successors are one long stream to the
// machine's prefetchers.
template <class Kind, int kRows>
void few_rows(const CodedTask& task) {
  constexpr int kPanels = dot_panels(kRows);
  const int32_t step = (task.panel_end - task.panel_begin) / kPanels;
  for (int32_t i = 0; i < step; ++i)
    tile<Kind, kRows, kPanels>(task, {task.panel_begin + i, step}, 0, 0, task.groups);
  if constexpr (kPanels > 1)
    for (int32_t panel = task.panel_begin + step * kPanels; panel < task.panel_end; ++panel)
      tile<Kind, kRows, 1>(task, {panel, 1}, 0, 0, task.groups);
}

template <class Kind, int kRows = kDotRows>
void linear_coded(const CodedTask& task) {
  if (task.rows == kRows) return few_rows<Kind, kRows>(task);
  if constexpr (kRows > 1) {
    if (task.rows < kRows) return linear_coded<Kind, kRows - 1>(task);
  }
  int32_t panel = task.panel_begin;
  for (; panel + kDotPanels <= task.panel_end; panel += kDotPanels)
    panels_of_many<Kind, kDotPanels>(task, panel);
  if constexpr (kDotPanels > 1)
    for (; panel < task.panel_end; ++panel) panels_of_many<Kind, 1>(task, panel);
}

// q = round(x * 32767 / largest |x|) of one group; a group of (nearly) nothing is 0. What is not finite makes
// the scale NaN, and with it everything that hangs on it.
InputGroup round_group(const float* x, int32_t count, const GroupShape& shape, int16_t* q) {
  Vec most = zero(), nothing = zero();
  for (int32_t c = 0; c < count; c += 16) {
    const Vec each = c + 16 <= count ? load(x + c) : load_n(x + c, count - c);
    most = max(absolute(each), most);
    nothing = fma(each, zero(), nothing);
  }
  const float limit = largest(most), broken = sum(nothing);
  if (broken != 0 || !(limit > 1e-30f)) {
    __builtin_memset(q, 0, sizeof(int16_t) * static_cast<uint64_t>(shape.group_columns));
    return {broken, broken, 0};
  }
  const float step = limit / kInputSteps;
  const Vec factor = broadcast(kInputSteps / limit);
  Vec total = zero();
  for (int32_t c = 0; c < shape.group_columns; c += 16) {
    const Vec each = c + 16 <= count ? load(x + c) : c < count ? load_n(x + c, count - c) : zero();
    const Vec steps = round(each * factor);
    store_integers(q + c, steps, smaller(16, shape.group_columns - c));
    total = total + steps;
  }
  const float whole = sum(total);  // exact: at most kMaxGroup * kInputSteps < 2^24
  return {step, step * whole, -shape.code_offset * static_cast<int32_t>(whole)};
}

}  // namespace

void linear_coded_int8(const CodedTask& task) { linear_coded<Int8>(task); }
void linear_coded_int4(const CodedTask& task) { linear_coded<Int4>(task); }

void round_inputs(const float* x, const GroupShape& shape, int16_t* q, InputGroup* groups) {
  for (int32_t begin = 0; begin < shape.columns; begin += shape.group, q += shape.group_columns)
    *groups++ = round_group(x + begin, smaller(shape.group, shape.columns - begin), shape, q);
}

double dot_burst(int64_t rounds, float* sink) {
  Ints sums[kProbeChains];
  for (int i = 0; i < kProbeChains; ++i) sums[i] = ints(i);
  alignas(64) const uint8_t codes[64] = {1, 2, 3};
  const int16_t two[2] = {1, -2};
  const Shorts w = load_codes(codes), x = broadcast_pair(two);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kProbeChains; ++i) sums[i] = most_products(w, x, sums[i]);
  }
  Vec all = zero();
  for (const Ints& each : sums) all = all + to_float(each);
  *sink = sum(all);
  return 2.0 * kMostProducts * kProbeChains * static_cast<double>(rounds);
}

}  // namespace whippet::cpu::WHIPPET_ISA
