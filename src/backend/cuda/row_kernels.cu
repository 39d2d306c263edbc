// Ops that treat each row or element on its own: embed, rms_norm, rope, store_kv, silu_mul, add, gathers.
// All are bound by memory or, for few rows, by the launch: an element is read and written once.
#include <algorithm>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/weight.cuh"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void fill_inputs_kernel(BatchView batch, const int32_t* drawn, int32_t* token_ids) {
  wait_for_inputs();
  let_next_start();
  const int32_t r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < batch.num_tokens && batch.sources[r] >= 0) token_ids[r] = max(drawn[batch.sources[r]], 0);
}

__global__ void copy_words_kernel(int32_t* to, const int32_t* from, int32_t words) {
  wait_for_inputs();
  let_next_start();
  const int32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < words) to[i] = from[i];
}

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

// Eight neighbours, read or written at once.
template <class T>
struct Eight {
  float v[8];
  __device__ static Eight load(const T* from) {
    Eight out;
#pragma unroll
    for (int part = 0; part < static_cast<int>(sizeof(T)) / 2; ++part) {
      const uint4 raw = reinterpret_cast<const uint4*>(from)[part];
      const T* values = reinterpret_cast<const T*>(&raw);
#pragma unroll
      for (int j = 0; j < 16 / static_cast<int>(sizeof(T)); ++j)
        out.v[part * (16 / sizeof(T)) + j] = to_float(values[j]);
    }
    return out;
  }
  __device__ void store(T* to) const {
#pragma unroll
    for (int part = 0; part < static_cast<int>(sizeof(T)) / 2; ++part) {
      uint4 raw;
      T* values = reinterpret_cast<T*>(&raw);
#pragma unroll
      for (int j = 0; j < 16 / static_cast<int>(sizeof(T)); ++j)
        values[j] = from_float<T>(v[part * (16 / sizeof(T)) + j]);
      reinterpret_cast<uint4*>(to)[part] = raw;
    }
  }
};

// As rms_norm_kernel for whole rows on 16 bytes, kept in registers; with y, x += y first.
constexpr int kNormChunks = 4;  // of eight elements that a thread keeps
template <class T>
__global__ void __launch_bounds__(kThreads)
    norm_row_kernel(const T* y, int64_t y_stride, T* x, int64_t x_stride, const float* weight, int32_t dim,
                    float eps, T* out, int64_t out_stride) {
  __shared__ float sums[32];
  wait_for_inputs();
  let_next_start();
  T* row = x + blockIdx.x * x_stride;
  Eight<T> values[kNormChunks];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kNormChunks; ++k) {
    const int32_t i = 8 * (static_cast<int32_t>(threadIdx.x) + k * static_cast<int32_t>(blockDim.x));
    if (i >= dim) break;
    values[k] = Eight<T>::load(row + i);
    if (y != nullptr) {
      const Eight<T> other = Eight<T>::load(y + blockIdx.x * y_stride + i);
#pragma unroll
      for (int j = 0; j < 8; ++j) values[k].v[j] = to_float(from_float<T>(values[k].v[j] + other.v[j]));
      values[k].store(row + i);
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) sum = fmaf(values[k].v[j], values[k].v[j], sum);
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? sums[threadIdx.x % 32] : 0);
  const float factor = 1 / sqrtf(sum / static_cast<float>(dim) + eps);
#pragma unroll
  for (int k = 0; k < kNormChunks; ++k) {
    const int32_t i = 8 * (static_cast<int32_t>(threadIdx.x) + k * static_cast<int32_t>(blockDim.x));
    if (i >= dim) break;
#pragma unroll
    for (int j = 0; j < 8; ++j) values[k].v[j] *= factor * weight[i + j];
    values[k].store(out + blockIdx.x * out_stride + i);
  }
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
  float low, high;
  rotate_pair(to_float(at[0]), to_float(at[half]), c, s, low, high);
  at[0] = from_float<T>(low);
  at[half] = from_float<T>(high);
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
__global__ void silu_mul_eights(const T* in, int64_t in_stride, T* out, int64_t out_stride, int32_t cols) {
  wait_for_inputs();
  let_next_start();
  const int32_t i = 8 * static_cast<int32_t>(blockIdx.y * blockDim.x + threadIdx.x);
  if (i >= cols) return;
  const T* row = in + blockIdx.x * in_stride + i;
  Eight<T> gate = Eight<T>::load(row);
  const Eight<T> up = Eight<T>::load(row + cols);
#pragma unroll
  for (int j = 0; j < 8; ++j) gate.v[j] = silu(gate.v[j]) * up.v[j];
  gate.store(out + blockIdx.x * out_stride + i);
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

bool on_sixteen(ConstMat m) {
  return reinterpret_cast<uintptr_t>(m.data) % 16 == 0 && m.stride % 8 == 0 && m.cols % 8 == 0;
}

dim3 by_row_and_column(int32_t rows, int32_t cols) {
  return dim3(static_cast<unsigned>(rows), static_cast<unsigned>(ceil_div(cols, kThreads)));
}

}  // namespace

void fill_inputs(const Queue& queue, const BatchView& batch, const int32_t* drawn, int32_t* token_ids) {
  launch(queue, "fill_inputs", fill_inputs_kernel, dim3(ceil_div(batch.num_tokens, kThreads)), kThreads, 0,
         batch, drawn, token_ids);
}

void copy_words(const Queue& queue, void* to, const void* from, int32_t words) {
  launch(queue, "copy", copy_words_kernel, dim3(ceil_div(words, kThreads)), kThreads, 0,
         static_cast<int32_t*>(to), static_cast<const int32_t*>(from), words);
}

void embed(const Queue& queue, const int32_t* ids, const WeightView& table, Mat out) {
  with_type(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    with_kind(table.kind, [&](auto kind) {
      launch(queue, "embed", embed_kernel<T, decltype(kind)::value>, dim3(out.rows), kThreads, 0, ids, table,
             static_cast<T*>(out.data), out.stride);
    });
  });
}

bool add_rms_norm(const Queue& queue, ConstMat y, Mat x, const float* weight, float eps, Mat out) {
  const int32_t threads = std::clamp(align_up(x.cols / 8, 32), 32, kThreads);
  const bool fits = on_sixteen(x) && on_sixteen(out) && (y.data == nullptr || on_sixteen(y));
  if (!fits || x.cols > 8 * kNormChunks * threads) return false;
  with_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    launch(queue, "rms_norm", norm_row_kernel<T>, dim3(x.rows), threads, 0, static_cast<const T*>(y.data),
           y.stride, static_cast<T*>(x.data), x.stride, weight, x.cols, eps, static_cast<T*>(out.data),
           out.stride);
  });
  return true;
}

void rms_norm(const Queue& queue, ConstMat x, const float* weight, int32_t dim, float eps, Mat out) {
  const Mat rows{const_cast<void*>(x.data), x.dtype, x.rows, x.cols, x.stride};  // only read without y
  if (dim == x.cols && x.dtype != DType::kF32 && add_rms_norm(queue, {}, rows, weight, eps, out)) return;
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
    if (on_sixteen(out) && on_sixteen(gate_up))
      return launch(queue, "silu_mul", silu_mul_eights<T>, by_row_and_column(out.rows, out.cols / 8),
                    kThreads, 0, static_cast<const T*>(gate_up.data), gate_up.stride,
                    static_cast<T*>(out.data), out.stride, out.cols);
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
