// What the linear kernels are given: PODs for kernels.h, which says what may be included here.
#pragma once

#include <cstdint>

namespace whippet::cpu {

// y = x w^T + bias for a run of panels. See linear_kernels.h for the order of the sums.
struct LinearTask {
  const void* codes;  // see pack.h
  const float* bias;  // may be nullptr
  int32_t out, columns;
  int32_t panel_begin, panel_end;
  const float* x;  // [rows, columns]
  int64_t x_stride;
  float* y;  // [rows, out]
  int64_t y_stride;
  int32_t rows;
};

// What the inputs of one row in one group came to: x ~ scale * q for integers q of 16 bits. Of each four
// columns the middle two are kept in turned order, as the codes of every second one are found side by side.
struct InputGroup {
  float scale;
  float sum;      // scale * (sum of q)
  int32_t start;  // -code_offset * (sum of q)
};

// How the packed columns of coded weights are grouped.
struct GroupShape {
  int32_t columns;        // of the weight
  int32_t group;          // that share a scale
  int32_t group_columns;  // as they are stored, with zero codes behind
  int32_t code_offset;    // what a code exceeds its value by
  int32_t groups;         // of a row
};

// The same with codes and scales by group against inputs rounded to integers (linear_coded_kernels.cc).
struct CodedTask {
  const uint8_t* codes;       // see pack.h
  const void *scale, *min;    // [panels][groups][16]; min may be nullptr
  bool half_scale, half_min;  // fp16 instead of fp32
  const float* bias;          // may be nullptr
  int32_t out, groups, group_columns;
  int32_t panel_begin, panel_end;
  const int16_t* x;          // [rows][groups * group_columns]
  const InputGroup* inputs;  // [rows][groups]
  float* y;                  // [rows, out]
  int64_t y_stride;
  int32_t rows;
};

// And with bf16 weights in pairs of columns against inputs rounded to bf16 (linear_pair_kernels.cc).
struct PairTask {
  const uint32_t* codes;  // see pack.h
  const float* bias;      // may be nullptr
  int32_t out, pairs;
  int32_t panel_begin, panel_end;
  const uint32_t* x;  // [rows][pairs]
  float* y;           // [rows, out]
  int64_t y_stride;
  int32_t rows;
};

}  // namespace whippet::cpu
