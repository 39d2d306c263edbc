// Ops that treat each row or element on its own: embed, rms_norm, rope, store_kv, silu_mul, add, gathers.
// All are bound by memory or, for few rows, by the launch: an element is read and written once.
#include <algorithm>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/weight.cuh"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int kThreads = 256;

template <class T, LinearKind kind>
__global__ void embed_kernel(const int32_t* ids, WeightView table, T* out, int64_t stride) {
  wait_for_inputs();
  let_next_start();
  const int64_t row = ids[blockIdx.x];
  for (int32_t c = threadIdx.x; c < table.columns; c += blockDim.x) {
    const int32_t i = table.order != nullptr ? table.order[c] : c;
    if (i >= 0) out[blockIdx.x * stride + i] = from_float<T>(weight_at<kind>(table, row, c));
  }
}

// A block a piece of a row.
template <class T>
__global__ void rms_norm_kernel(const T* x, int64_t x_stride, const float* weight, int32_t dim, float eps,
                                T* out, int64_t out_stride) {
  __shared__ float sums[32];
  wait_for_inputs();
  let_next_start();
  const T* in = x + blockIdx.x * x_stride + static_cast<int64_t>(blockIdx.y) * dim;
  T* to = out + blockIdx.x * out_stride + static_cast<int64_t>(blockIdx.y) * dim;
  float sum = 0;
  for (int32_t i = threadIdx.x; i < dim; i += blockDim.x) {
    const float value = to_float(in[i]);
    sum = fmaf(value, value, sum);
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? sums[threadIdx.x % 32] : 0);
  const float factor = 1 / sqrtf(sum / static_cast<float>(dim) + eps);
  for (int32_t i = threadIdx.x; i < dim; i += blockDim.x)
    to[i] = from_float<T>(to_float(in[i]) * factor * weight[i]);
}

__global__ void rope_angles_kernel(BatchView batch, float* out, int64_t stride, int32_t half) {
  wait_for_inputs();
  let_next_start();
  const int32_t r = blockIdx.x;
  const float position = static_cast<float>(batch.positions[r]);
  const float* inv_freq = batch.inv_freq + static_cast<int64_t>(batch.seq_of_token[r]) * half;
  for (int32_t i = threadIdx.x; i < half; i += blockDim.x) {
    double sine, cosine;  // of the fp32 angle that models were trained with
    sincos(static_cast<double>(__fmul_rn(position, inv_freq[i])), &sine, &cosine);
    out[r * stride + i] = static_cast<float>(cosine);
    out[r * stride + half + i] = static_cast<float>(sine);
  }
}

template <class T>
__global__ void rope_kernel(T* x, int64_t stride, int32_t pairs, int32_t half, const float* cos_sin,
                            int64_t angle_stride) {
  wait_for_inputs();
  let_next_start();
  const int32_t p = blockIdx.y * blockDim.x + threadIdx.x;
  if (p >= pairs) return;
  const int32_t i = p % half;
  const float c = cos_sin[blockIdx.x * angle_stride + i], s = cos_sin[blockIdx.x * angle_stride + half + i];
  T* at = x + blockIdx.x * stride + static_cast<int64_t>(p / half) * 2 * half + i;
  const float a = to_float(at[0]), b = to_float(at[half]);
  at[0] = from_float<T>(a * c - b * s);
  at[half] = from_float<T>(b * c + a * s);
}

// NaN keeps its sign and stays quiet, as on the host.
__device__ void put(float value, float* to) { *to = value; }
__device__ void put(float value, __half* to) { *to = __ushort_as_half(f32_to_f16(value)); }
__device__ void put(float value, __nv_bfloat16* to) { *to = __ushort_as_bfloat16(f32_to_bf16(value)); }

template <class T, class C>
__global__ void store_kv_kernel(BatchView batch, const T* k, int64_t k_stride, const T* v, int64_t v_stride,
                                KvCacheView cache) {
  wait_for_inputs();
  let_next_start();
  const int32_t r = blockIdx.x, position = batch.positions[r];
  if (position < 0) return;  // a row that only fills up the batch
  const int64_t block =
      batch.block_table[static_cast<int64_t>(batch.seq_of_token[r]) * batch.max_blocks_per_seq +
                        position / cache.block_size];
  const int32_t columns = cache.num_kv_heads * cache.head_dim;
  for (int32_t c = threadIdx.x; c < columns; c += blockDim.x) {
    const int64_t head = block * cache.num_kv_heads + c / cache.head_dim;
    const int64_t at =
        (head * cache.block_size + position % cache.block_size) * cache.head_dim + c % cache.head_dim;
    put(to_float(k[r * k_stride + c]), static_cast<C*>(cache.k) + at);
    put(to_float(v[r * v_stride + c]), static_cast<C*>(cache.v) + at);
  }
}

template <class T>
__global__ void silu_mul_kernel(const T* in, int64_t in_stride, T* out, int64_t out_stride, int32_t cols) {
  wait_for_inputs();
  let_next_start();
  const int32_t i = blockIdx.y * blockDim.x + threadIdx.x;
  if (i >= cols) return;
  const T* row = in + blockIdx.x * in_stride;
  out[blockIdx.x * out_stride + i] = from_float<T>(silu(to_float(row[i])) * to_float(row[cols + i]));
}

template <class T>
__global__ void add_kernel(const T* y, int64_t y_stride, T* x, int64_t x_stride, int32_t cols) {
  wait_for_inputs();
  let_next_start();
  const int32_t i = blockIdx.y * blockDim.x + threadIdx.x;
  if (i >= cols) return;
  T& to = x[blockIdx.x * x_stride + i];
  to = from_float<T>(to_float(to) + to_float(y[blockIdx.x * y_stride + i]));
}

template <class T>
__global__ void gather_rows_kernel(const T* x, int64_t x_stride, const int32_t* rows, T* out,
                                   int64_t out_stride, int32_t cols) {
  wait_for_inputs();
  let_next_start();
  const T* from = x + rows[blockIdx.x] * x_stride;
  for (int32_t i = threadIdx.x; i < cols; i += blockDim.x) out[blockIdx.x * out_stride + i] = from[i];
}

template <class T>
__global__ void gather_columns_kernel(const T* x, int64_t x_stride, const int32_t* order, T* out,
                                      int64_t out_stride, int32_t cols) {
  wait_for_inputs();
  let_next_start();
  for (int32_t c = threadIdx.x; c < cols; c += blockDim.x) {
    const int32_t i = order[c];
    out[blockIdx.x * out_stride + c] = i >= 0 ? x[blockIdx.x * x_stride + i] : from_float<T>(0);
  }
}

dim3 by_row_and_column(int32_t rows, int32_t cols) {
  return dim3(static_cast<unsigned>(rows), static_cast<unsigned>(ceil_div(cols, kThreads)));
}

}  // namespace

void embed(const Queue& queue, const int32_t* ids, const WeightView& table, Mat out) {
  with_type(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    with_kind(table.kind, [&](auto kind) {
      launch(queue, "embed", embed_kernel<T, decltype(kind)::value>, dim3(out.rows), kThreads, 0, ids, table,
             static_cast<T*>(out.data), out.stride);
    });
  });
}

void rms_norm(const Queue& queue, ConstMat x, const float* weight, int32_t dim, float eps, Mat out) {
  const dim3 grid(static_cast<unsigned>(x.rows), static_cast<unsigned>(x.cols / dim));
  const int32_t threads = std::clamp(align_up(ceil_div(dim, 4), 32), 32, 1024);
  with_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    launch(queue, "rms_norm", rms_norm_kernel<T>, grid, threads, 0, static_cast<const T*>(x.data), x.stride,
           weight, dim, eps, static_cast<T*>(out.data), out.stride);
  });
}

void rope_angles(const Queue& queue, const BatchView& batch, Mat cos_sin) {
  launch(queue, "rope_angles", rope_angles_kernel, dim3(batch.num_tokens), 64, 0, batch,
         static_cast<float*>(cos_sin.data), cos_sin.stride, cos_sin.cols / 2);
}

void rope(const Queue& queue, Mat x, int32_t head_dim, ConstMat cos_sin) {
  with_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    launch(queue, "rope", rope_kernel<T>, by_row_and_column(x.rows, x.cols / 2), kThreads, 0,
           static_cast<T*>(x.data), x.stride, x.cols / 2, head_dim / 2,
           static_cast<const float*>(cos_sin.data), cos_sin.stride);
  });
}

void store_kv(const Queue& queue, const BatchView& batch, ConstMat k, ConstMat v, const KvCacheView& cache) {
  with_type(k.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    with_type(cache.dtype, [&](auto cache_tag) {
      using C = typename decltype(cache_tag)::Type;
      launch(queue, "store_kv", store_kv_kernel<T, C>, dim3(batch.num_tokens), kThreads, 0, batch,
             static_cast<const T*>(k.data), k.stride, static_cast<const T*>(v.data), v.stride, cache);
    });
  });
}

void silu_mul(const Queue& queue, ConstMat gate_up, Mat out) {
  with_type(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    launch(queue, "silu_mul", silu_mul_kernel<T>, by_row_and_column(out.rows, out.cols), kThreads, 0,
           static_cast<const T*>(gate_up.data), gate_up.stride, static_cast<T*>(out.data), out.stride,
           out.cols);
  });
}

void add(const Queue& queue, ConstMat y, Mat x) {
  with_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    launch(queue, "add", add_kernel<T>, by_row_and_column(x.rows, x.cols), kThreads, 0,
           static_cast<const T*>(y.data), y.stride, static_cast<T*>(x.data), x.stride, x.cols);
  });
}

void gather_rows(const Queue& queue, ConstMat x, const int32_t* rows, Mat out) {
  with_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    launch(queue, "gather_rows", gather_rows_kernel<T>, dim3(out.rows), kThreads, 0,
           static_cast<const T*>(x.data), x.stride, rows, static_cast<T*>(out.data), out.stride, out.cols);
  });
}

void gather_columns(const Queue& queue, ConstMat x, const int32_t* order, Mat out) {
  with_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    launch(queue, "gather_columns", gather_columns_kernel<T>, dim3(out.rows), kThreads, 0,
           static_cast<const T*>(x.data), x.stride, order, static_cast<T*>(out.data), out.stride, out.cols);
  });
}

}  // namespace whippet::cuda
