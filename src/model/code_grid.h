// Rounding dense weights to the codes of a grid, group by group: what --quantization does while a model
// loads, and where GPTQ starts. Used by the linear loader and the quantizer.
#pragma once

#include <cstdint>
#include <span>

#include "backend/linear_weight.h"
#include "base/error.h"

namespace whippet {

// value = scale * (code - zero) with code and zero 0 .. 2^bits - 1, as GPTQ's files have it.
struct CodeGrid {
  int32_t bits = 8;       // 2 to 8
  int32_t group = 0;      // inputs that share a scale; 0: all of a row
  bool symmetric = true;  // zero is the middle
};

struct GroupFit {
  float scale = 0;
  int32_t zero = 0;
};

// The scale and zero point for one group. Below 8 bits the range is narrowed as far as that lowers the
// squared error of rounding. All zeros get a scale of 0.
GroupFit fit_group(std::span<const float> values, const CodeGrid& grid);

// The nearest code; the zero point where the scale is 0.
int32_t nearest_code(float value, const GroupFit& fit, int32_t bits);

// A dense weight in codes: kU4 up to 4 bits, else kI8. Keeps the bias. Values must be finite: kCorrupt names
// the first that is not.
Result<CanonicalLinear> round_to_nearest(const CanonicalLinear& dense, const CodeGrid& grid);

}  // namespace whippet
