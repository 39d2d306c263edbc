// softmax(q k^T * scale) v over the paged cache for any type and size: a block a row and query head, one
// order of summation. Types and sizes of most models have kernels of their own: see
// split_attention_kernels.cu.
#include "backend/cuda/attention.cuh"

namespace whippet::cuda {
namespace {

constexpr int kMaxHeadDim = 256;
constexpr int kAnyThreads = 128;

__device__ float block_max(float value, float* shared) {
  value = warp_max(value);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = warp_max(threadIdx.x % 32 < kAnyThreads / 32 ? shared[threadIdx.x % 32] : kNone);
  __syncthreads();
  return value;
}
__device__ float block_sum(float value, float* shared) {
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = warp_sum(threadIdx.x % 32 < kAnyThreads / 32 ? shared[threadIdx.x % 32] : 0);
  __syncthreads();
  return value;
}

// Grid: rows, query heads. Tiles of kAnyThreads keys at absolute positions, one key a thread.
template <class T, class C>
__global__ void __launch_bounds__(kAnyThreads) attend_any(AttendArgs a) {
  __shared__ float q[kMaxHeadDim], weights[kAnyThreads], reduced[kAnyThreads / 32];
  wait_for_inputs();
  let_next_start();
  const int32_t r = blockIdx.x, h = blockIdx.y, dim = a.cache.head_dim, tid = threadIdx.x;
  const int32_t position = a.batch.positions[r], first = first_key(a, position);
  const int32_t* table =
      a.batch.block_table + static_cast<int64_t>(a.batch.seq_of_token[r]) * a.batch.max_blocks_per_seq;
  const int32_t kv_head = a.kv_head_of_q[h];
  const T* query = static_cast<const T*>(a.q) + r * a.q_stride + static_cast<int64_t>(h) * dim;
  for (int32_t d = tid; d < dim; d += kAnyThreads) q[d] = to_float(query[d]);
  __syncthreads();
  float largest = kNone, total = 0, sums[kMaxHeadDim / kAnyThreads] = {};
  for (int32_t tile = first / kAnyThreads * kAnyThreads; tile <= position; tile += kAnyThreads) {
    const int32_t t = tile + tid;
    const bool seen = t >= first && t <= position;
    float score = kNone;
    if (seen) {
      const C* key = static_cast<const C*>(a.cache.k) + cache_row(a, table, t, kv_head);
      float dot = 0;
      for (int32_t d = 0; d < dim; ++d) dot = fmaf(q[d], to_float(key[d]), dot);
      score = dot * a.scale;
    }
    const float before = largest;
    largest = fmaxf(largest, block_max(score, reduced));
    const float weight = seen ? expf(score - largest) : 0;
    weights[tid] = weight;
    const float shrink = before == kNone ? 0 : expf(before - largest);
    total = total * shrink + block_sum(weight, reduced);  // its barriers also publish the weights
    const int32_t begin = max(first, tile), end = min(position + 1, tile + kAnyThreads);
    for (int32_t d = tid, i = 0; d < dim; d += kAnyThreads, ++i) {
      float sum = 0;
      for (int32_t key = begin; key < end; ++key)
        sum = fmaf(weights[key - tile],
                   to_float(static_cast<const C*>(a.cache.v)[cache_row(a, table, key, kv_head) + d]), sum);
      sums[i] = sums[i] * shrink + sum;
    }
    __syncthreads();
  }
  T* out = static_cast<T*>(a.out) + r * a.out_stride + static_cast<int64_t>(h) * dim;
  for (int32_t d = tid, i = 0; d < dim; d += kAnyThreads, ++i)
    out[d] = from_float<T>(total > 0 ? sums[i] / total : 0.0f);
}

bool can_split(const AttendArgs& a, DType q_type) {
  return q_type == a.cache.dtype && q_type != DType::kF32 &&
         (a.cache.head_dim == 64 || a.cache.head_dim == 128) &&
         (a.cache.block_size & (a.cache.block_size - 1)) == 0;
}

AttendArgs args_of(const BatchView& batch, const AttentionArgs& args) {
  WH_CHECK_LE(args.cache.head_dim, kMaxHeadDim);
  return {batch,
          args.cache,
          args.q.data,
          args.out.data,
          args.q.stride,
          args.out.stride,
          args.kv_head_of_q,
          args.num_q_heads,
          args.window,
          args.scale,
          {},
          false};
}

}  // namespace

void attention(const Queue& queue, const BatchView& batch, const AttentionArgs& args,
               const AttentionScratch& scratch) {
  AttendArgs a = args_of(batch, args);
  if (can_split(a, args.q.dtype)) {
    // Not where rows of a prompt and of a decode step must be summed alike.
    a.prompts = scratch.may_split && batch.row_begin != nullptr && args.scale > 0 &&
                batch.num_tokens - batch.num_seqs + 1 >= kPromptRows;
    if (a.prompts) attend_prompts(queue, a, args.q.dtype, scratch);
    if (!a.prompts || batch.num_seqs > 1) attend_split(queue, a, args.q.dtype, scratch);
    return;
  }
  with_type(args.q.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    with_type(args.cache.dtype, [&](auto cache_tag) {
      using C = typename decltype(cache_tag)::Type;
      const dim3 grid(static_cast<unsigned>(batch.num_tokens), static_cast<unsigned>(args.num_q_heads));
      launch(queue, "attention", attend_any<T, C>, grid, kAnyThreads, 0, a);
    });
  });
}

bool rotate_and_attend(const Queue& queue, const BatchView& batch, const AttentionArgs& args,
                       const Rotation& rotation, const AttentionScratch& scratch) {
  AttendArgs a = args_of(batch, args);
  if (!can_split(a, args.q.dtype)) return false;
  a.rotation = rotation;
  attend_split(queue, a, args.q.dtype, scratch);
  return true;
}

}  // namespace whippet::cuda
