// Products that take any type and any shape: a warp an output, eight rows of x at a time, sums in fp32 in an
// order that depends on the weight's shape alone. Reads the weight once for every eight rows.
#include "backend/cuda/launch.cuh"
#include "backend/cuda/weight.cuh"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kRows = 8;  // of x that share one reading of the weight

template <class T>
struct Input {
  const T* data;
  int64_t stride;
  int32_t rows, cols;
  bool aligned;  // rows on 16 bytes, cols a multiple of 8
};

// x[8 i .. 8 i + 8) of a row; 0 from cols on.
template <class T>
__device__ __forceinline__ void inputs_of_eight(const Input<T>& x, int32_t r, int32_t i, float* out) {
  const T* row = x.data + r * x.stride + 8 * i;
  if (x.aligned) {
    constexpr int kPerLoad = 16 / sizeof(T);
#pragma unroll
    for (int part = 0; part < 8 / kPerLoad; ++part) {
      const uint4 raw = reinterpret_cast<const uint4*>(row)[part];
      const T* from = reinterpret_cast<const T*>(&raw);
#pragma unroll
      for (int j = 0; j < kPerLoad; ++j) out[part * kPerLoad + j] = to_float(from[j]);
    }
  } else {
#pragma unroll
    for (int j = 0; j < 8; ++j) out[j] = 8 * i + j < x.cols ? to_float(row[j]) : 0.0f;
  }
}

template <class T, LinearKind kind>
__global__ void __launch_bounds__(32 * kWarps)
    linear_rows_kernel(Input<T> x, WeightView w, void* out, int64_t out_stride, bool out_is_float) {
  const int32_t o = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
  const int32_t first = blockIdx.y * kRows, rows = min(kRows, x.rows - first);
  wait_for_inputs();
  let_next_start();
  if (o >= w.out) return;
  float sums[kRows] = {};
  const int32_t eights = (w.columns + 7) / 8;
  for (int32_t i = lane; i < eights; i += 32) {
    float weights[8], inputs[8];
    weights_of_eight<kind>(w, o, i, weights);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= rows) break;
      inputs_of_eight(x, first + r, i, inputs);
#pragma unroll
      for (int j = 0; j < 8; ++j) sums[r] = fmaf(weights[j], inputs[j], sums[r]);
    }
  }
  const float bias = w.bias != nullptr ? w.bias[o] : 0.0f;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float sum = warp_sum(sums[r]) + bias;
    if (lane != 0 || r >= rows) continue;
    const int64_t at = (first + r) * out_stride + o;
    if (out_is_float) {
      static_cast<float*>(out)[at] = sum;
    } else {
      static_cast<T*>(out)[at] = from_float<T>(sum);
    }
  }
}

constexpr int kEights = 4;  // of a thread

// A thread eight columns of a row at a time, neighbours in the row by neighbouring threads.
template <class T, LinearKind kind>
__global__ void __launch_bounds__(256)
    dequantise_kernel(WeightView w, int32_t first, int32_t rows, T* out, int64_t stride) {
  wait_for_inputs();
  let_next_start();
  const int32_t of_row = (w.columns + 7) / 8;
#pragma unroll
  for (int k = 0; k < kEights; ++k) {
    const int32_t at = (blockIdx.x * kEights + k) * 256 + threadIdx.x, row = at / of_row;
    if (row >= rows) return;
    const int32_t i = at - row * of_row;
    float weights[8];
    weights_of_eight<kind>(w, first + row, i, weights);
    alignas(16) T values[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) values[j] = from_float<T>(weights[j]);
    auto* to = reinterpret_cast<uint4*>(out + row * stride + 8 * i);
#pragma unroll
    for (size_t part = 0; part < sizeof(values) / 16; ++part)
      to[part] = reinterpret_cast<const uint4*>(values)[part];
  }
}

template <class T, LinearKind kind>
void launch_rows(const Queue& queue, ConstMat x, const WeightView& w, Mat out) {
  const auto address = reinterpret_cast<uintptr_t>(x.data);
  const bool aligned = address % 16 == 0 && x.stride * sizeof(T) % 16 == 0 && x.cols % 8 == 0;
  const Input<T> input{static_cast<const T*>(x.data), x.stride, x.rows, x.cols, aligned};
  const dim3 grid(static_cast<unsigned>(ceil_div(w.out, kWarps)),
                  static_cast<unsigned>(ceil_div(x.rows, kRows)));
  launch(queue, "linear", linear_rows_kernel<T, kind>, grid, 32 * kWarps, 0, input, w, out.data, out.stride,
         out.dtype == DType::kF32);
}

// The kinds that pack makes for activations of type T: any for fp32, else T's own and the quantised ones.
template <class T, class Body>
void with_kind_for(LinearKind kind, const Body& body) {
  if constexpr (std::is_same_v<T, float>) {
    with_kind(kind, body);
  } else {
    constexpr LinearKind kOwn = std::is_same_v<T, __half> ? LinearKind::kF16 : LinearKind::kBF16;
    if (kind == kOwn) return body(std::integral_constant<LinearKind, kOwn>());
    if (kind == LinearKind::kInt8) return body(std::integral_constant<LinearKind, LinearKind::kInt8>());
    WH_CHECK(kind == LinearKind::kInt4, "{} weights", linear_kind_name(kind));
    body(std::integral_constant<LinearKind, LinearKind::kInt4>());
  }
}

}  // namespace

void linear_rows(const Queue& queue, ConstMat x, const WeightView& w, Mat out) {
  with_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    with_kind_for<T>(w.kind, [&](auto kind) { launch_rows<T, decltype(kind)::value>(queue, x, w, out); });
  });
}

void dequantise(const Queue& queue, const WeightView& w, int32_t first, Mat out) {
  with_type(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    with_kind_for<T>(w.kind, [&](auto kind) {
      const int64_t eights = int64_t{out.rows} * ceil_div(w.columns, 8);
      launch(queue, "dequantise", dequantise_kernel<T, decltype(kind)::value>,
             dim3(static_cast<unsigned>(ceil_div<int64_t>(eights, 256 * kEights))), 256, 0, w, first,
             out.rows, static_cast<T*>(out.data), out.stride);
    });
  });
}

}  // namespace whippet::cuda
