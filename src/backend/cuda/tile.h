// Products of few rows with what may be fused to them: see tile_kernels.cu. Used by the backend alone.
#pragma once

#include "backend/cuda/kernels.h"

namespace whippet::cuda {

constexpr int32_t kMaxTileRows = 32;

struct TileArgs {
  const void* x = nullptr;  // [rows, in]
  int64_t x_stride = 0;
  int32_t rows = 0;
  int32_t in = 0;
  const void* weights = nullptr;  // [out, in], or cells (WeightView)
  int64_t weight_stride = 0;
  LinearKind kind = LinearKind::kF32;
  int32_t cell_bytes = 0;
  int32_t cell_groups = 0;  // of the columns of a cell, that share a scale
  bool has_min = false;
  int32_t out = 0;
  const float* bias = nullptr;  // [out]
  void* y = nullptr;            // [rows, out]; nullptr where nobody reads it
  int64_t y_stride = 0;
  bool y_is_float = false;
  // x is normed first where norm is set (tiles_can_norm), and the normed rows are written too where normed
  // is. normed is not x.
  const float* norm = nullptr;  // [in]
  float eps = 0;
  void* normed = nullptr;  // [rows, in]
  int64_t normed_stride = 0;
  // residual += y, where set.
  void* residual = nullptr;  // [rows, out]
  int64_t residual_stride = 0;
  // gated = silu(y[:, :pair]) * y[:, pair:], where pair is set; out is 2 * pair.
  int32_t pair = 0;
  void* gated = nullptr;  // [rows, pair]
  int64_t gated_stride = 0;
  // The order of summation may depend on how many rows there are.
  bool may_bulk = false;
  // Shares of the work, filled in by the launcher.
  int32_t tiles = 0;        // of the whole product
  int32_t group_units = 0;  // of a group of loads of a warp; 0: the block's weights fit into shared memory
  int32_t round_tiles = 0;  // whose sums fit into shared memory
  bool staged = false;      // x goes through shared memory
};

// Whether linear_tiles can take them.
bool tiles_fit(ConstMat x, const WeightView& w);
// Whether they can take a norm of x as well, with `out` outputs.
bool tiles_can_norm(const Queue& queue, ConstMat x, int32_t out);
TileArgs tile_args(ConstMat x, const WeightView& w, Mat out);
void linear_tiles(const Queue& queue, DType dtype, const TileArgs& args);
// bulk_kernels.cu: up to 8 rows where a block has room for all its weights; false where they do not suit it.
bool linear_bulk(const Queue& queue, DType dtype, const TileArgs& args);

// code_kernels.cu: any number of rows, eight at a time. Whether linear_codes can take them, with a norm too:
bool codes_fit(const Queue& queue, ConstMat x, const WeightView& w);
// normed is nullptr.
void linear_codes(const Queue& queue, DType dtype, const TileArgs& args);

}  // namespace whippet::cuda
