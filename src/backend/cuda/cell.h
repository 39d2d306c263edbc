// How weights in codes lie in memory, for pack.cc and the kernels: in cells of 8 rows and 128 columns. The
// columns are 4 steps of 4 parts of 8 columns: lane 4 r + part of a warp finds what it multiplies of row r in
// 16 neighbouring bytes (int8: twice 16, of two steps each), so a warp reads 512 neighbouring bytes. What a
// lane unpacks together is next to each other:
//   int4  a word holds columns 0 2 4 6 1 3 5 7, the first in the lowest bits
//   int8  eight bytes hold columns 0 2 1 3 4 6 5 7
#pragma once

#include <cstdint>

#include "backend/linear_weight.h"

namespace whippet::cuda {

constexpr int32_t kCellRows = 8, kCellColumns = 128;

// Bytes before the scales.
constexpr int32_t code_bytes_of_cell(LinearKind kind) { return kind == LinearKind::kInt4 ? 512 : 1024; }
// Where in its cell the eight codes of columns [8 i, 8 i + 8) of a row begin.
constexpr int32_t place_in_cell(LinearKind kind, int64_t row, int32_t i) {
  const int32_t step = i / 4 % 4, lane = static_cast<int32_t>(row % kCellRows) * 4 + i % 4;
  return kind == LinearKind::kInt4 ? lane * 16 + step * 4 : step / 2 * 512 + lane * 16 + step % 2 * 8;
}
// Which of the eight bytes is column c's, and which of the bits of the word.
constexpr int32_t byte_of_column(int32_t c) { return c % 8 / 4 * 4 + c % 2 * 2 + c % 4 / 2; }
constexpr int32_t bit_of_column(int32_t c) { return c % 8 / 2 * 4 + c % 2 * 16; }

}  // namespace whippet::cuda
