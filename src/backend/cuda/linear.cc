#include "backend/cuda/linear.h"

#include <algorithm>
#include <utility>

#include "backend/cuda/pack.h"
#include "base/math.h"

namespace whippet::cuda {
namespace {

// Beyond these cuBLASLt is quicker: with 16 rows of Qwen2.5-0.5B on an H200 by a third.
constexpr int32_t kFewRows = 8;
constexpr int32_t kFewRowsInCodes = 16;  // two passes of a kernel against a copy of the weight as numbers
constexpr int32_t kGatheredRows = 64;
constexpr size_t kNumbers = size_t{16} << 20;  // weights dequantised at a time

ConstMat some_rows(ConstMat x, int32_t first, int32_t count) {
  const auto* data =
      static_cast<const char*>(x.data) + first * x.stride * static_cast<int64_t>(dtype_size(x.dtype));
  return {data, x.dtype, count, x.cols, x.stride};
}
Mat some_rows(Mat x, int32_t first, int32_t count) {
  auto* data = static_cast<char*>(x.data) + first * x.stride * static_cast<int64_t>(dtype_size(x.dtype));
  return {data, x.dtype, count, x.cols, x.stride};
}

DType type_of(LinearKind kind) {
  if (kind == LinearKind::kF16) return DType::kF16;
  return kind == LinearKind::kBF16 ? DType::kBF16 : DType::kF32;
}

bool is_quantised(LinearKind kind) { return kind == LinearKind::kInt8 || kind == LinearKind::kInt4; }

}  // namespace

Linear::Linear(std::unique_ptr<Blas> blas, DType activations, bool deterministic)
    : blas_(std::move(blas)), activations_(activations), deterministic_(deterministic) {}

void Linear::prepare(const LinearWeight& weight) {
  const size_t element = dtype_size(activations_);
  if (is_quantised(weight.kind) && numbers_.bytes() == 0 && blas_ != nullptr && !deterministic_)
    numbers_ = Device::allocate(kNumbers * element);
  if (weight.order == nullptr || weight.columns <= gathered_columns_) return;
  gathered_columns_ = align_up(weight.columns, 8);
  gathered_ =
      Device::allocate(static_cast<size_t>(kGatheredRows) * static_cast<size_t>(gathered_columns_) * element);
}

bool Linear::uses_codes(const Queue& queue, ConstMat x, const LinearWeight& weight) const {
  const bool quicker = blas_ == nullptr || x.rows <= kFewRowsInCodes;
  return quicker && !deterministic_ && codes_fit(queue, x, view_of(weight));
}

bool Linear::uses_tiles(const Queue& queue, ConstMat x, const LinearWeight& weight) const {
  if (weight.order != nullptr) return false;
  if (is_quantised(weight.kind)) return x.rows <= kFewRows && uses_codes(queue, x, weight);
  const bool quicker = blas_ == nullptr || deterministic_ || x.rows <= kFewRows;
  return quicker && tiles_fit(x, view_of(weight));
}

void Linear::run(const Queue& queue, ConstMat x, const LinearWeight& weight, Mat out) {
  if (weight.order == nullptr) return product(queue, x, weight, out);
  for (int32_t first = 0; first < x.rows; first += kGatheredRows) {
    const int32_t rows = std::min(kGatheredRows, x.rows - first);
    const Mat gathered{gathered_.as<void>(), x.dtype, rows, weight.columns, gathered_columns_};
    gather_columns(queue, some_rows(x, first, rows), weight.order, gathered);
    product(queue, gathered, weight, some_rows(out, first, rows));
  }
}

void Linear::product(const Queue& queue, ConstMat x, const LinearWeight& weight, Mat out) {
  const WeightView view = view_of(weight);
  if (uses_codes(queue, x, weight)) return linear_codes(queue, x.dtype, tile_args(x, view, out));
  if (uses_tiles(queue, x, weight)) {
    TileArgs args = tile_args(x, view, out);
    args.may_bulk = !deterministic_;
    return linear_tiles(queue, x.dtype, args);
  }
  if (product_of_many(queue, x, weight, out)) return;
  const bool in_tiles = tiles_fit(some_rows(x, 0, std::min(x.rows, kMaxTileRows)), view);
  if (!in_tiles) return linear_rows(queue, x, view, out);
  for (int32_t first = 0; first < x.rows; first += kMaxTileRows) {
    const int32_t rows = std::min(kMaxTileRows, x.rows - first);
    linear_tiles(queue, x.dtype, tile_args(some_rows(x, first, rows), view, some_rows(out, first, rows)));
  }
}

bool Linear::product_of_many(const Queue& queue, ConstMat x, const LinearWeight& weight, Mat out) {
  if (blas_ == nullptr || deterministic_ || x.rows <= kFewRows) return false;
  if (is_quantised(weight.kind)) return product_of_quantised(queue, x, weight, out);
  if (type_of(weight.kind) != x.dtype) return false;
  const auto stride = view_of(weight).row_bytes / static_cast<int64_t>(dtype_size(x.dtype));
  const ConstMat w{weight.codes, x.dtype, weight.out, weight.in, stride};
  WH_CHECK(weight.bias == nullptr || out.dtype == x.dtype, "a bias on logits");
  return blas_->product(queue.stream, x, w, typed_bias(weight), out);
}

bool Linear::product_of_quantised(const Queue& queue, ConstMat x, const LinearWeight& weight, Mat out) {
  const int32_t stride = align_up(weight.columns, 8);
  const auto most = static_cast<int32_t>(kNumbers / static_cast<size_t>(stride)) / 8 * 8;
  if (most == 0) return false;
  const auto* bias = static_cast<const char*>(typed_bias(weight));
  for (int32_t first = 0; first < weight.out; first += most) {
    const int32_t count = std::min(most, weight.out - first);
    const Mat numbers{numbers_.as<void>(), x.dtype, count, weight.columns, stride};
    dequantise(queue, view_of(weight), first, numbers);
    const void* own_bias =
        bias == nullptr ? nullptr : bias + static_cast<size_t>(first) * dtype_size(x.dtype);
    if (!blas_->product(queue.stream, x, numbers, own_bias, out.columns(first, count))) return false;
  }
  return true;
}

}  // namespace whippet::cuda
