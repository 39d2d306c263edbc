// What both kinds of dense linear kernels share: how packed weights (pack.h) are read. The arithmetic on an
// element is the same for any number of rows and panels: sum = bias, then sum = fma(x, w, sum) for rising
// columns. Included by files that are compiled once per instruction set.
#pragma once

#include "backend/cpu/kernel_functions.h"
#include "simd_convert.h"
#include "simd_math.h"

namespace whippet::cpu::WHIPPET_ISA {
namespace {

WH_SIMD int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
// How one column of a panel is read.
struct F32 {
  using Element = float;
  WH_SIMD Vec column(const float* panel, int64_t c) { return load(panel + c * 16); }
};
struct F16 {
  using Element = uint16_t;
  WH_SIMD Vec column(const uint16_t* panel, int64_t c) { return load_f16(panel + c * 16, 16); }
};
struct Bf16 {
  using Element = uint16_t;
  WH_SIMD Vec column(const uint16_t* panel, int64_t c) { return load_bf16(panel + c * 16, 16); }
};

template <class Kind>
WH_SIMD const typename Kind::Element* panel_codes(const LinearTask& task, int32_t panel) {
  return static_cast<const typename Kind::Element*>(task.codes) +
         static_cast<int64_t>(panel) * task.columns * 16;
}

WH_SIMD int32_t valid_outputs(const LinearTask& task, int32_t panel) {
  return smaller(16, task.out - panel * 16);
}

WH_SIMD Vec first_sum(const LinearTask& task, int32_t panel) {
  return task.bias != nullptr ? load_n(task.bias + panel * 16, valid_outputs(task, panel)) : zero();
}

}  // namespace
}  // namespace whippet::cpu::WHIPPET_ISA
