// softmax(q k^T * scale) v over the paged cache, two ways.
//   split  fp16 or bf16, head_dim 64 or 128: a block takes a row, a KV head and a piece of the context, in
//          tiles of 64 keys, for up to eight query heads of that KV head at once; K and V are read once for
//          them. The block that ends last merges the pieces of its row in order. Bytes: the row's K and V.
//   any    every other type and size: a block a row and query head, one order of summation.
#include <algorithm>
#include <cfloat>

#include "backend/cuda/launch.cuh"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int kMaxHeadDim = 256;
constexpr int kAnyThreads = 128;
constexpr int kTile = 64;  // keys
constexpr int kWarps = 4;  // of a split block
constexpr int kHeads = 8;  // query heads that share a reading of K and V
constexpr float kNone = -FLT_MAX;

struct Args {
  BatchView batch;
  KvCacheView cache;
  const void* q;
  void* out;
  int64_t q_stride, out_stride;
  const int32_t* kv_head_of_q;
  int32_t num_q_heads, window;
  float scale;
};

__device__ __forceinline__ int64_t cache_row(const Args& a, const int32_t* table, int32_t t, int32_t head) {
  const int64_t block = table[t / a.cache.block_size];
  return ((block * a.cache.num_kv_heads + head) * a.cache.block_size + t % a.cache.block_size) *
         a.cache.head_dim;
}

__device__ __forceinline__ int32_t first_key(const Args& a, int32_t position) {
  return a.window > 0 ? max(0, position - a.window + 1) : 0;
}

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
__global__ void __launch_bounds__(kAnyThreads) attend_any(Args a) {
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

// What a block knows of its piece, in shared memory.
template <int kDim>
struct Piece {
  float q[kHeads][kDim];
  float weights[kHeads][kTile];
  float largest[kHeads], total[kHeads], shrink[kHeads];
  float sums[kWarps][kHeads][kDim];
  int32_t heads[kHeads];  // query heads of this pass
  int32_t num_heads, is_last;
};

struct Split {
  float* partial;  // [rows * splits, num_q_heads, 2 + head_dim]: largest, total, sums
  int32_t* counters;
  int32_t splits, keys;  // pieces a row, keys a piece
};

template <class T>
__device__ __forceinline__ void eight_floats(const uint4& raw, float* out) {
  const T* from = reinterpret_cast<const T*>(&raw);
#pragma unroll
  for (int j = 0; j < 8; ++j) out[j] = to_float(from[j]);
}

// Query heads number [8 * pass, 8 * pass + 8) of those that read kv_head; true where there are any.
template <int kDim>
__device__ bool find_heads(const Args& a, int32_t kv_head, int32_t pass, Piece<kDim>& piece) {
  __syncthreads();
  if (threadIdx.x < 32) {
    int32_t found = 0;
    for (int32_t base = 0; base < a.num_q_heads; base += 32) {
      const int32_t h = base + threadIdx.x;
      const bool mine = h < a.num_q_heads && a.kv_head_of_q[h] == kv_head;
      const unsigned ballot = __ballot_sync(~0u, mine);
      const int32_t place = found + __popc(ballot & ((1u << threadIdx.x) - 1)) - pass * kHeads;
      if (mine && place >= 0 && place < kHeads) piece.heads[place] = h;
      found += __popc(ballot);
    }
    if (threadIdx.x == 0) piece.num_heads = min(kHeads, found - pass * kHeads);
  }
  __syncthreads();
  return piece.num_heads > 0;
}

// Scores of one tile into piece.weights. Threads: kDim / 8 neighbours a key.
template <class T, int kDim>
__device__ void score_tile(const Args& a, const int32_t* table, int32_t kv_head, int32_t tile, int32_t begin,
                           int32_t end, Piece<kDim>& piece) {
  constexpr int kLanes = kDim / 8, kKeys = 32 * kWarps / kLanes;
  const int32_t lane = threadIdx.x % kLanes, slot = threadIdx.x / kLanes;
  uint4 raw[kTile / kKeys];
#pragma unroll
  for (int i = 0; i < kTile / kKeys; ++i) {
    const int32_t t = tile + i * kKeys + slot;
    raw[i] = make_uint4(0, 0, 0, 0);
    if (t >= begin && t < end)
      raw[i] = reinterpret_cast<const uint4*>(static_cast<const T*>(a.cache.k) +
                                              cache_row(a, table, t, kv_head))[lane];
  }
#pragma unroll
  for (int i = 0; i < kTile / kKeys; ++i) {
    const int32_t t = tile + i * kKeys + slot;
    float key[8];
    eight_floats<T>(raw[i], key);
    for (int32_t h = 0; h < piece.num_heads; ++h) {
      float dot = 0;
#pragma unroll
      for (int j = 0; j < 8; ++j) dot = fmaf(piece.q[h][8 * lane + j], key[j], dot);
#pragma unroll
      for (int offset = kLanes / 2; offset > 0; offset /= 2) dot += __shfl_xor_sync(~0u, dot, offset);
      if (lane == h % kLanes)
        piece.weights[h][i * kKeys + slot] = t >= begin && t < end ? dot * a.scale : kNone;
    }
  }
}

// Turns the scores of a tile into weights and moves the running maximum and total.
template <int kDim>
__device__ void weigh_tile(Piece<kDim>& piece) {
  const int32_t lane = threadIdx.x % 32;
  for (int32_t h = threadIdx.x / 32; h < piece.num_heads; h += kWarps) {
    const float s0 = piece.weights[h][lane], s1 = piece.weights[h][lane + 32];
    const float before = piece.largest[h], largest = fmaxf(before, warp_max(fmaxf(s0, s1)));
    const float w0 = s0 == kNone ? 0 : __expf(s0 - largest), w1 = s1 == kNone ? 0 : __expf(s1 - largest);
    const float sum = warp_sum(w0 + w1);
    piece.weights[h][lane] = w0;
    piece.weights[h][lane + 32] = w1;
    __syncwarp();
    if (lane == 0) {
      const float shrink = before == kNone ? 0 : __expf(before - largest);
      piece.shrink[h] = shrink;
      piece.largest[h] = largest;
      piece.total[h] = piece.total[h] * shrink + sum;
    }
  }
}

template <class T, int kDim>
__device__ void add_values(const Args& a, const int32_t* table, int32_t kv_head, int32_t tile, int32_t begin,
                           int32_t end, const Piece<kDim>& piece, float (&sums)[kHeads][8]) {
  constexpr int kLanes = kDim / 8, kKeys = 32 * kWarps / kLanes;
  const int32_t lane = threadIdx.x % kLanes, slot = threadIdx.x / kLanes;
  uint4 raw[kTile / kKeys];
#pragma unroll
  for (int i = 0; i < kTile / kKeys; ++i) {
    const int32_t t = tile + i * kKeys + slot;
    raw[i] = make_uint4(0, 0, 0, 0);
    if (t >= begin && t < end)
      raw[i] = reinterpret_cast<const uint4*>(static_cast<const T*>(a.cache.v) +
                                              cache_row(a, table, t, kv_head))[lane];
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const float shrink = piece.shrink[h];
#pragma unroll
    for (int j = 0; j < 8; ++j) sums[h][j] *= shrink;
  }
#pragma unroll
  for (int i = 0; i < kTile / kKeys; ++i) {
    float value[8];
    eight_floats<T>(raw[i], value);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      const float weight = piece.weights[h][i * kKeys + slot];
#pragma unroll
      for (int j = 0; j < 8; ++j) sums[h][j] = fmaf(weight, value[j], sums[h][j]);
    }
  }
}

// Sums over the threads that held different keys, into piece.sums[0].
template <int kDim>
__device__ void gather_sums(float (&sums)[kHeads][8], Piece<kDim>& piece) {
  constexpr int kLanes = kDim / 8;
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int offset = kLanes; offset < 32; offset *= 2)
        sums[h][j] += __shfl_xor_sync(~0u, sums[h][j], offset);
      if (lane < kLanes) piece.sums[warp][h][8 * lane + j] = sums[h][j];
    }
  }
  __syncthreads();
  for (int32_t i = threadIdx.x; i < kHeads * kDim; i += 32 * kWarps) {
    float* at = &piece.sums[0][0][0] + i;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += at[w * kHeads * kDim];
    *at = sum;
  }
  __syncthreads();
}

// The last piece of a row and KV head to end adds all of them up, in the order of the context.
template <class T, int kDim>
__device__ void merge(const Args& a, const Split& split, int32_t r, Piece<kDim>& piece) {
  constexpr int kSize = kDim + 2;
  for (int32_t i = threadIdx.x; i < piece.num_heads * kDim; i += 32 * kWarps) {
    const int32_t h = piece.heads[i / kDim], d = i % kDim;
    const float* at = split.partial + (static_cast<int64_t>(r) * split.splits * a.num_q_heads + h) * kSize;
    const int64_t step = static_cast<int64_t>(a.num_q_heads) * kSize;
    float largest = kNone;
    for (int32_t s = 0; s < split.splits; ++s) largest = fmaxf(largest, __ldcg(at + s * step));
    float total = 0, sum = 0;
    for (int32_t s = 0; s < split.splits; ++s) {
      const float own = __ldcg(at + s * step);
      if (own == kNone) continue;
      const float weight = __expf(own - largest);
      total = fmaf(__ldcg(at + s * step + 1), weight, total);
      sum = fmaf(__ldcg(at + s * step + 2 + d), weight, sum);
    }
    static_cast<T*>(a.out)[r * a.out_stride + static_cast<int64_t>(h) * kDim + d] =
        from_float<T>(total > 0 ? sum / total : 0.0f);
  }
}

template <class T, int kDim>
__device__ void write_piece(const Args& a, const Split& split, int32_t r, const Piece<kDim>& piece) {
  for (int32_t i = threadIdx.x; i < piece.num_heads * kDim; i += 32 * kWarps) {
    const int32_t index = i / kDim, h = piece.heads[index], d = i % kDim;
    const float sum = piece.sums[0][index][d];
    if (split.splits == 1) {
      const float total = piece.total[index];
      static_cast<T*>(a.out)[r * a.out_stride + static_cast<int64_t>(h) * kDim + d] =
          from_float<T>(total > 0 ? sum / total : 0.0f);
      continue;
    }
    float* at = split.partial +
                ((static_cast<int64_t>(r) * split.splits + blockIdx.y) * a.num_q_heads + h) * (kDim + 2);
    at[2 + d] = sum;
    if (d == 0) at[0] = piece.largest[index], at[1] = piece.total[index];
  }
}

// Grid: rows, pieces, KV heads.
template <class T, int kDim>
__global__ void __launch_bounds__(32 * kWarps) attend_split(Args a, Split split) {
  __shared__ Piece<kDim> piece;
  wait_for_inputs();
  let_next_start();
  const int32_t r = blockIdx.x, kv_head = blockIdx.z;
  const int32_t position = a.batch.positions[r];
  const int32_t* table =
      a.batch.block_table + static_cast<int64_t>(a.batch.seq_of_token[r]) * a.batch.max_blocks_per_seq;
  const int32_t begin = max(first_key(a, position), static_cast<int32_t>(blockIdx.y) * split.keys);
  const int32_t end = min(position + 1, (static_cast<int32_t>(blockIdx.y) + 1) * split.keys);
  for (int32_t pass = 0; find_heads(a, kv_head, pass, piece); ++pass) {
    for (int32_t i = threadIdx.x; i < kHeads * kDim; i += 32 * kWarps) {
      const int32_t h = i / kDim;
      if (h < piece.num_heads)
        piece.q[h][i % kDim] = to_float(static_cast<const T*>(
            a.q)[r * a.q_stride + static_cast<int64_t>(piece.heads[h]) * kDim + i % kDim]);
    }
    for (int32_t i = threadIdx.x; i < kHeads * kTile; i += 32 * kWarps) piece.weights[0][i] = 0;
    if (threadIdx.x < kHeads) {
      piece.largest[threadIdx.x] = kNone;
      piece.total[threadIdx.x] = piece.shrink[threadIdx.x] = 0;
    }
    __syncthreads();
    float sums[kHeads][8] = {};
    for (int32_t tile = begin / kTile * kTile; tile < end; tile += kTile) {
      score_tile<T>(a, table, kv_head, tile, begin, end, piece);
      __syncthreads();
      weigh_tile(piece);
      __syncthreads();
      add_values<T>(a, table, kv_head, tile, begin, end, piece, sums);
      __syncthreads();
    }
    gather_sums(sums, piece);
    write_piece<T>(a, split, r, piece);
  }
  if (split.splits == 1) return;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    int32_t* counter = split.counters + static_cast<int64_t>(r) * gridDim.z + kv_head;
    piece.is_last = atomicAdd(counter, 1) == split.splits - 1;
    if (piece.is_last) *counter = 0;
  }
  __syncthreads();
  if (!piece.is_last) return;
  __threadfence();
  for (int32_t pass = 0; find_heads(a, kv_head, pass, piece); ++pass) merge<T>(a, split, r, piece);
}

// Enough pieces to fill the device, none shorter than a tile, all within the scratch memory.
Split plan_split(const Queue& queue, const Args& a, const AttentionScratch& scratch) {
  const int32_t longest = a.batch.max_blocks_per_seq * a.cache.block_size;
  const int32_t rows = a.batch.num_tokens, blocks = rows * a.cache.num_kv_heads;
  int64_t splits = scratch.may_split ? ceil_div(4 * queue.num_sms, std::max(blocks, 1)) : 1;
  splits = std::min<int64_t>(splits, ceil_div(longest, kTile));
  const int64_t floats = int64_t{rows} * a.num_q_heads * (a.cache.head_dim + 2);
  splits = std::min<int64_t>(splits, static_cast<int64_t>(scratch.floats) / std::max<int64_t>(floats, 1));
  if (blocks > scratch.num_counters) splits = 1;
  splits = std::max<int64_t>(splits, 1);
  const auto keys = align_up(ceil_div(longest, static_cast<int32_t>(splits)), kTile);
  return {scratch.partial, scratch.counters, std::max(ceil_div(longest, keys), 1), keys};
}

bool can_split(const Args& a, DType q_type) {
  return q_type == a.cache.dtype && q_type != DType::kF32 &&
         (a.cache.head_dim == 64 || a.cache.head_dim == 128);
}

}  // namespace

void attention(const Queue& queue, const BatchView& batch, const AttentionArgs& args,
               const AttentionScratch& scratch) {
  WH_CHECK_LE(args.cache.head_dim, kMaxHeadDim);
  const Args a{batch,           args.cache,        args.q.data,      args.out.data, args.q.stride,
               args.out.stride, args.kv_head_of_q, args.num_q_heads, args.window,   args.scale};
  const auto rows = static_cast<unsigned>(batch.num_tokens);
  with_type(args.q.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if constexpr (!std::is_same_v<T, float>) {
      if (can_split(a, args.q.dtype)) {
        const Split split = plan_split(queue, a, scratch);
        const dim3 grid(rows, static_cast<unsigned>(split.splits),
                        static_cast<unsigned>(a.cache.num_kv_heads));
        const auto kernel = a.cache.head_dim == 64 ? attend_split<T, 64> : attend_split<T, 128>;
        return launch(queue, "attention", kernel, grid, 32 * kWarps, 0, a, split);
      }
    }
    with_type(args.cache.dtype, [&](auto cache_tag) {
      using C = typename decltype(cache_tag)::Type;
      launch(queue, "attention", attend_any<T, C>, dim3(rows, static_cast<unsigned>(args.num_q_heads)),
             kAnyThreads, 0, a);
    });
  });
}

}  // namespace whippet::cuda
