// What both kinds of linear kernels share: how packed weights (pack.h) are read. The arithmetic on an
// element, the same for any number of rows and panels:
//   dense   sum = bias, then sum = fma(x, w, sum) for rising columns
//   coded   sum = bias, then for rising groups: part = fma(x, code, part) for the group's rising columns from
//   0,
//           sum = fma(part, scale, sum), sum = fma(sum of the group's x, min, sum)
// so that scales are multiplied once a group. Included by files that are compiled once per instruction set.
#pragma once

#include "backend/cpu/kernel_functions.h"
#include "simd_convert.h"
#include "simd_math.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

WH_SIMD int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
WH_SIMD int32_t ceil_eighths(int32_t n) { return (n + 7) / 8; }

// How one column of a panel is read.
struct F32 {
  static constexpr bool kCoded = false, kNibbles = false;
  using Element = float;
  WH_SIMD Vec column(const float* panel, int64_t c) { return load(panel + c * 16); }
};
struct F16 {
  static constexpr bool kCoded = false, kNibbles = false;
  using Element = uint16_t;
  WH_SIMD Vec column(const uint16_t* panel, int64_t c) { return load_f16(panel + c * 16, 16); }
};
struct Bf16 {
  static constexpr bool kCoded = false, kNibbles = false;
  using Element = uint16_t;
  WH_SIMD Vec column(const uint16_t* panel, int64_t c) { return load_bf16(panel + c * 16, 16); }
};
struct Int8 {
  static constexpr bool kCoded = true, kNibbles = false;
  using Element = int8_t;
  WH_SIMD Vec column(const int8_t* panel, int64_t c) { return load(panel + c * 16); }
};
struct Int4 {
  static constexpr bool kCoded = true, kNibbles = true;
  using Element = uint32_t;
};

WH_SIMD int32_t num_groups(const LinearTask& task) { return (task.columns + task.group - 1) / task.group; }

template <class Kind>
WH_SIMD const typename Kind::Element* panel_codes(const LinearTask& task, int32_t panel) {
  int64_t rows = task.columns;
  if constexpr (Kind::kNibbles) rows = static_cast<int64_t>(num_groups(task)) * ceil_eighths(task.group);
  return static_cast<const typename Kind::Element*>(task.codes) + panel * rows * 16;
}

WH_SIMD int32_t valid_outputs(const LinearTask& task, int32_t panel) {
  return smaller(16, task.out - panel * 16);
}

WH_SIMD Vec first_sum(const LinearTask& task, int32_t panel) {
  return task.bias != nullptr ? load_n(task.bias + panel * 16, valid_outputs(task, panel)) : zero();
}

// Ends group g: the parts of some rows (from row 0 of x_sums) and panels join their sums.
template <int kRows, int kPanels>
WH_SIMD void end_group(const LinearTask& task, int32_t panel, int32_t g, const float* x_sums,
                       const Vec (&parts)[kRows][kPanels], Vec (&sums)[kRows][kPanels]) {
  const int64_t groups = num_groups(task);
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const int64_t at = ((panel + p) * groups + g) * 16;
    const Vec scale = load(task.scale + at);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r][p] = fma(parts[r][p], scale, sums[r][p]);
    if (task.min == nullptr) continue;
    const Vec min = load(task.min + at);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r][p] = fma(broadcast(x_sums[r * groups + g]), min, sums[r][p]);
  }
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
