// softmax(q k^T * scale) v over the paged cache, two ways.
//   split  fp16 or bf16, head_dim 64 or 128, blocks of a power of two: a block takes a row, a KV head and a
//   piece
//          of the context, for up to eight query heads of that KV head at once, so that K and V are read once
//          for them. Each warp goes through tiles of 32 keys on its own: scores on the tensor cores with the
//          keys as the operand of 16 rows and the heads as that of 8 columns, values in fp32. The warps are
//          added up at the end, and the block that ends last adds up the pieces of its row, in the order of
//          the context. Bytes: the row's K and V.
//   any    every other type and size: a block a row and query head, one order of summation.
#include <algorithm>
#include <cfloat>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/mma.cuh"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int kMaxHeadDim = 256;
constexpr int kAnyThreads = 128;
constexpr int kTile = 32;                 // keys that a warp looks at together
constexpr int kWarps = 4;                 // of a split block
constexpr int kHeads = 8;                 // query heads that share a reading of K and V
constexpr int kMaxSplits = 32;            // pieces of a row
constexpr int kMinKeys = kTile * kWarps;  // of a piece
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
  Rotation rotation;
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

// What the warps of a block share.
template <class T, int kDim>
struct Piece {
  T q[kHeads][kDim];
  float weights[kWarps][kTile][kHeads];
  float shrink[kWarps][kHeads];  // of the sums before this tile
  float largest[kWarps][kHeads], total[kWarps][kHeads];
  float sums[kWarps][kHeads][kDim];
  float shares[kHeads][kMaxSplits];  // of each piece in the whole
  int32_t heads[kHeads];             // query heads of this pass
  int32_t num_heads, all_heads, pass, is_last;
};

struct Split {
  float* partial;  // [rows, splits, num_q_heads, 2 + head_dim]: largest, total, sums
  int32_t* counters;
  int32_t splits, block_shift;  // most pieces a row; log2 of the cache's block size
};

// The keys [begin, end) of this block, one of `pieces` that the row is cut into.
struct Share {
  int32_t begin, end, pieces;
};
__device__ Share share_of(const Args& a, const Split& split, int32_t position) {
  const int32_t first = first_key(a, position), origin = first / kTile * kTile;
  const int32_t span = position + 1 - origin;
  const int32_t even = (span + split.splits - 1) / split.splits;
  const int32_t keys = max(kMinKeys, (even + kTile - 1) / kTile * kTile);
  const int32_t begin = origin + static_cast<int32_t>(blockIdx.y) * keys;
  return {max(first, begin), min(position + 1, begin + keys), max(1, (span + keys - 1) / keys)};
}

template <class T>
__device__ __forceinline__ void eight_floats(const uint4& raw, float* out) {
  const T* from = reinterpret_cast<const T*>(&raw);
#pragma unroll
  for (int j = 0; j < 8; ++j) out[j] = to_float(from[j]);
}

// Where key t of a KV head lies, in elements.
template <int kDim>
__device__ __forceinline__ int64_t key_row(const Args& a, const Split& split, const int32_t* table, int32_t t,
                                           int32_t kv_head) {
  const int64_t head = static_cast<int64_t>(table[t >> split.block_shift]) * a.cache.num_kv_heads + kv_head;
  return ((head << split.block_shift) + (t & ((1 << split.block_shift) - 1))) * kDim;
}

// Query heads number [8 * pass, 8 * pass + 8) of those that read kv_head; true where there are any. Which
// they are never changes, so that this may come before the wait for inputs.
template <class T, int kDim>
__device__ bool find_heads(const Args& a, int32_t kv_head, int32_t pass, Piece<T, kDim>& piece) {
  if (pass > 0 && piece.all_heads <= pass * kHeads) return false;
  if (pass == piece.pass) return piece.num_heads > 0;
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
    if (threadIdx.x == 0) {
      piece.num_heads = min(kHeads, found - pass * kHeads);
      piece.all_heads = found;
      piece.pass = pass;
    }
  }
  __syncthreads();
  return piece.num_heads > 0;
}

// Elements d and d + kDim / 2 of a head, rotated and rounded.
template <class T, int kDim>
__device__ __forceinline__ void rotated(const Args& a, int32_t r, const T* head, int32_t d, T& low, T& high) {
  const float* angles = a.rotation.cos_sin + r * a.rotation.cos_sin_stride;
  float turned, other;
  rotate_pair(to_float(head[d]), to_float(head[d + kDim / 2]), angles[d], angles[d + kDim / 2], turned,
              other);
  low = from_float<T>(turned);
  high = from_float<T>(other);
}

// The row's own key and value into the cache, by the block whose piece they end; a barrier must follow.
template <class T, int kDim>
__device__ void store_own(const Args& a, const int32_t* table, int32_t kv_head, int32_t r, int32_t position) {
  const int64_t at = cache_row(a, table, position, kv_head), column = static_cast<int64_t>(kv_head) * kDim;
  const T* k = static_cast<const T*>(a.rotation.k) + r * a.rotation.k_stride + column;
  const T* v = static_cast<const T*>(a.rotation.v) + r * a.rotation.v_stride + column;
  T* keys = static_cast<T*>(a.cache.k) + at;
  for (int32_t d = threadIdx.x; d < kDim / 2; d += 32 * kWarps)
    rotated<T, kDim>(a, r, k, d, keys[d], keys[d + kDim / 2]);
  for (int32_t d = threadIdx.x; d < kDim; d += 32 * kWarps) static_cast<T*>(a.cache.v)[at + d] = v[d];
}

// Leaves q and k rotated behind, once nobody reads them any more: the heads of this pass, and with the first
// pass the key of the KV head.
template <class T, int kDim>
__device__ void rotate_in_place(const Args& a, int32_t r, int32_t kv_head, bool with_key,
                                const Piece<T, kDim>& piece) {
  T* keys = static_cast<T*>(a.rotation.k) + r * a.rotation.k_stride + static_cast<int64_t>(kv_head) * kDim;
  T* queries = static_cast<T*>(a.rotation.q) + r * a.rotation.q_stride;
  const int32_t heads = piece.num_heads + (with_key ? 1 : 0);
  for (int32_t i = threadIdx.x; i < heads * (kDim / 2); i += 32 * kWarps) {
    const int32_t h = i / (kDim / 2), d = i % (kDim / 2);
    T* head = h < piece.num_heads ? queries + static_cast<int64_t>(piece.heads[h]) * kDim : keys;
    T low, high;
    rotated<T, kDim>(a, r, head, d, low, high);
    head[d] = low;
    head[d + kDim / 2] = high;
  }
}

template <class T, int kDim>
__device__ void load_queries(const Args& a, int32_t r, Piece<T, kDim>& piece) {
  for (int32_t i = threadIdx.x; i < kHeads * (kDim / 2); i += 32 * kWarps) {
    const int32_t h = i / (kDim / 2), d = i % (kDim / 2);
    T low = from_float<T>(0), high = low;
    if (h < piece.num_heads) {
      const T* head =
          static_cast<const T*>(a.q) + r * a.q_stride + static_cast<int64_t>(piece.heads[h]) * kDim;
      low = head[d], high = head[d + kDim / 2];
      if (a.rotation.cos_sin != nullptr) rotated<T, kDim>(a, r, head, d, low, high);
    }
    piece.q[h][d] = low;
    piece.q[h][d + kDim / 2] = high;
  }
  __syncthreads();
}

// What a lane holds of the softmax: of heads 2 (lane % 4) and the next, over the keys that it has seen.
struct Running {
  float largest[2] = {kNone, kNone}, total[2] = {0, 0};
};

// Scores of 16 keys [t, t + 16) for the eight heads: of this lane keys lane / 4 and 8 more, heads as Running.
template <class T, int kDim>
__device__ __forceinline__ void score(const Args& a, const Split& split, const int32_t* table,
                                      int32_t kv_head, int32_t t, const Share& share,
                                      const uint4 (&q)[kDim / 32], float (&scores)[4]) {
  const int32_t lane = threadIdx.x % 32;
  uint4 keys[2][kDim / 32];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int32_t key = t + lane / 4 + 8 * half;
    const bool seen = key >= share.begin && key < share.end;
    const T* row =
        static_cast<const T*>(a.cache.k) + (seen ? key_row<kDim>(a, split, table, key, kv_head) : 0);
#pragma unroll
    for (int i = 0; i < kDim / 32; ++i)
      keys[half][i] = seen ? reinterpret_cast<const uint4*>(row)[4 * i + lane % 4] : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int i = 0; i < kDim / 32; ++i) {
    const uint4 &low = keys[0][i], &high = keys[1][i];
    mma<T>(scores, low.x, high.x, low.y, high.y, q[i].x, q[i].y);
    mma<T>(scores, low.z, high.z, low.w, high.w, q[i].z, q[i].w);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int32_t key = t + lane / 4 + i / 2 * 8;
    scores[i] = key >= share.begin && key < share.end ? scores[i] * a.scale : kNone;
  }
}

// Turns a tile's scores into weights, in shared memory; whether the sums before must shrink.
template <class T, int kDim>
__device__ __forceinline__ bool weigh(const float (&scores)[kTile / 16][4], Running& running,
                                      Piece<T, kDim>& piece) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, head = lane % 4 * 2;
  bool grown = false;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float largest = running.largest[h];
#pragma unroll
    for (int m = 0; m < kTile / 16; ++m) largest = fmaxf(largest, fmaxf(scores[m][h], scores[m][h + 2]));
#pragma unroll
    for (int offset = 4; offset < 32; offset *= 2)
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, offset));
    const float shrink = running.largest[h] == kNone ? 0 : __expf(running.largest[h] - largest);
    grown |= largest > running.largest[h];
    running.largest[h] = largest;
    running.total[h] *= shrink;
    if (lane / 4 == 0) piece.shrink[warp][head + h] = shrink;
#pragma unroll
    for (int i = 0; i < kTile / 8; ++i) {  // keys lane / 4 + 8 i
      const float value = scores[i / 2][i % 2 * 2 + h];
      const float weight = value == kNone ? 0 : __expf(value - largest);
      running.total[h] += weight;
      piece.weights[warp][lane / 4 + 8 * i][head + h] = weight;
    }
  }
  return __any_sync(~0u, grown);
}

// sums[h][j] += weight of the key for head h * value[8 lane + j], over the keys of a tile that this lane
// reads.
template <class T, int kDim>
__device__ __forceinline__ void add_values(const Args& a, const Split& split, const int32_t* table,
                                           int32_t kv_head, int32_t tile, const Share& share,
                                           const Piece<T, kDim>& piece, float (&sums)[kHeads][8]) {
  constexpr int kLanes = kDim / 8, kKeys = 32 / kLanes, kLoads = 8;
  const int32_t lane = threadIdx.x % kLanes, slot = threadIdx.x % 32 / kLanes, warp = threadIdx.x / 32;
#pragma unroll
  for (int part = 0; part < kTile / kKeys; part += kLoads) {
    uint4 raw[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int32_t t = tile + (part + i) * kKeys + slot;
      raw[i] = make_uint4(0, 0, 0, 0);
      if (t >= share.begin && t < share.end)
        raw[i] = reinterpret_cast<const uint4*>(static_cast<const T*>(a.cache.v) +
                                                key_row<kDim>(a, split, table, t, kv_head))[lane];
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      float value[8], weights[kHeads];
      eight_floats<T>(raw[i], value);
      const auto* from = reinterpret_cast<const float4*>(piece.weights[warp][(part + i) * kKeys + slot]);
      reinterpret_cast<float4*>(weights)[0] = from[0];
      reinterpret_cast<float4*>(weights)[1] = from[1];
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        if (h >= piece.num_heads) break;
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[h][j] = fmaf(weights[h], value[j], sums[h][j]);
      }
    }
  }
}

// Leaves a warp's result in shared memory.
template <class T, int kDim>
__device__ __forceinline__ void put_sums(Running& running, float (&sums)[kHeads][8], Piece<T, kDim>& piece) {
  constexpr int kLanes = kDim / 8;
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int offset = 4; offset < 32; offset *= 2)
      running.total[h] += __shfl_xor_sync(~0u, running.total[h], offset);
    if (lane < 4) {
      piece.largest[warp][2 * lane + h] = running.largest[h];
      piece.total[warp][2 * lane + h] = running.total[h];
    }
  }
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
}

// A warp's share of the piece: tiles kWarps apart.
template <class T, int kDim>
__device__ __forceinline__ void attend_tiles(const Args& a, const Split& split, const int32_t* table,
                                             int32_t kv_head, const Share& share, Piece<T, kDim>& piece) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint4 q[kDim / 32];
#pragma unroll
  for (int i = 0; i < kDim / 32; ++i)
    q[i] = reinterpret_cast<const uint4*>(piece.q[lane / 4])[4 * i + lane % 4];
  Running running;
  float sums[kHeads][8] = {};
  for (int32_t tile = share.begin / kTile * kTile + warp * kTile; tile < share.end; tile += kWarps * kTile) {
    float scores[kTile / 16][4] = {};
#pragma unroll
    for (int m = 0; m < kTile / 16; ++m)
      score<T, kDim>(a, split, table, kv_head, tile + 16 * m, share, q, scores[m]);
    const bool shrinks = weigh(scores, running, piece);
    __syncwarp();
    if (shrinks) {
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        const float shrink = piece.shrink[warp][h];
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[h][j] *= shrink;
      }
    }
    add_values(a, split, table, kv_head, tile, share, piece, sums);
    __syncwarp();
  }
  put_sums(running, sums, piece);
}

// Adds up the warps and writes the piece, or where it is the only one the result.
template <class T, int kDim>
__device__ void write_piece(const Args& a, const Split& split, int32_t r, bool alone,
                            const Piece<T, kDim>& piece) {
  for (int32_t i = threadIdx.x; i < piece.num_heads * kDim; i += 32 * kWarps) {
    const int32_t index = i / kDim, h = piece.heads[index], d = i % kDim;
    float largest = kNone, total = 0, sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, piece.largest[w][index]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float weight = piece.largest[w][index] == kNone ? 0 : __expf(piece.largest[w][index] - largest);
      total = fmaf(weight, piece.total[w][index], total);
      sum = fmaf(weight, piece.sums[w][index][d], sum);
    }
    if (alone) {
      static_cast<T*>(a.out)[r * a.out_stride + static_cast<int64_t>(h) * kDim + d] =
          from_float<T>(total > 0 ? sum / total : 0.0f);
      continue;
    }
    float* at = split.partial +
                ((static_cast<int64_t>(r) * split.splits + blockIdx.y) * a.num_q_heads + h) * (kDim + 2);
    at[2 + d] = sum;
    if (d == 0) at[0] = largest, at[1] = total;
  }
}

// The last piece of a row and KV head to end adds all of them up, in the order of the context.
template <class T, int kDim>
__device__ void merge(const Args& a, const Split& split, int32_t r, int32_t pieces, Piece<T, kDim>& piece) {
  constexpr int kSize = kDim + 2;
  const int64_t step = static_cast<int64_t>(a.num_q_heads) * kSize;
  const float* row = split.partial + static_cast<int64_t>(r) * split.splits * step;
  const int32_t lane = threadIdx.x % 32;
  for (int32_t h = threadIdx.x / 32; h < piece.num_heads; h += kWarps) {  // a lane a piece
    const float* at = row + lane * step + static_cast<int64_t>(piece.heads[h]) * kSize;
    const float own = lane < pieces ? __ldcg(at) : kNone, total = lane < pieces ? __ldcg(at + 1) : 0;
    const float largest = warp_max(own);
    const float weight = own == kNone ? 0 : __expf(own - largest);
    const float all = warp_sum(weight * total);
    piece.shares[h][lane] = all > 0 ? weight / all : 0;
  }
  __syncthreads();
  for (int32_t i = threadIdx.x; i < piece.num_heads * kDim; i += 32 * kWarps) {
    const int32_t index = i / kDim, d = i % kDim;
    const int64_t h = piece.heads[index];
    float sum = 0;
#pragma unroll 4
    for (int32_t s = 0; s < pieces; ++s)
      sum = fmaf(piece.shares[index][s], __ldcg(row + s * step + h * kSize + 2 + d), sum);
    static_cast<T*>(a.out)[r * a.out_stride + h * kDim + d] = from_float<T>(sum);
  }
}

// Whether this block is the last of its row and KV head to come here.
template <class T, int kDim>
__device__ bool is_last(const Split& split, int32_t r, int32_t kv_head, int32_t pieces,
                        Piece<T, kDim>& piece) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    int32_t* counter = split.counters + static_cast<int64_t>(r) * gridDim.z + kv_head;
    piece.is_last = atomicAdd(counter, 1) == pieces - 1;
    if (piece.is_last) *counter = 0;
  }
  __syncthreads();
  __threadfence();
  return piece.is_last;
}

// Grid: rows, pieces, KV heads.
template <class T, int kDim>
__global__ void __launch_bounds__(32 * kWarps, 3) attend_split(Args a, Split split) {
  __shared__ __align__(16) Piece<T, kDim> piece;
  const int32_t r = blockIdx.x, kv_head = blockIdx.z;
  if (threadIdx.x == 0) piece.pass = -1;
  __syncthreads();
  find_heads(a, kv_head, 0, piece);
  wait_for_inputs();
  let_next_start();
  const int32_t position = a.batch.positions[r];
  const Share share = share_of(a, split, position);
  if (blockIdx.y >= share.pieces) return;
  const int32_t* table =
      a.batch.block_table + static_cast<int64_t>(a.batch.seq_of_token[r]) * a.batch.max_blocks_per_seq;
  const bool rotates = a.rotation.cos_sin != nullptr && position >= 0;
  if (rotates && position >= share.begin && position < share.end)
    store_own<T, kDim>(a, table, kv_head, r, position);
  for (int32_t pass = 0; find_heads(a, kv_head, pass, piece); ++pass) {
    load_queries(a, r, piece);
    attend_tiles(a, split, table, kv_head, share, piece);
    __syncthreads();
    write_piece(a, split, r, share.pieces == 1, piece);
  }
  if (share.pieces > 1) {
    if (!is_last(split, r, kv_head, share.pieces, piece)) return;
    for (int32_t pass = 0; find_heads(a, kv_head, pass, piece); ++pass)
      merge(a, split, r, share.pieces, piece);
  }
  if (!rotates || !a.rotation.keep) return;
  for (int32_t pass = 0; find_heads(a, kv_head, pass, piece); ++pass)
    rotate_in_place(a, r, kv_head, pass == 0, piece);
}

// Enough pieces to fill the device, all within the scratch memory.
Split plan_split(const Queue& queue, const Args& a, const AttentionScratch& scratch) {
  const int32_t longest = a.batch.max_blocks_per_seq * a.cache.block_size;
  const int32_t rows = a.batch.num_tokens, blocks = rows * a.cache.num_kv_heads;
  int64_t splits = scratch.may_split ? ceil_div(3 * queue.num_sms, std::max(blocks, 1)) : 1;
  splits = std::min<int64_t>({splits, ceil_div(longest, kMinKeys), kMaxSplits});
  const int64_t floats = int64_t{rows} * a.num_q_heads * (a.cache.head_dim + 2);
  splits = std::min<int64_t>(splits, static_cast<int64_t>(scratch.floats) / std::max<int64_t>(floats, 1));
  if (blocks > scratch.num_counters) splits = 1;
  int32_t shift = 0;
  while (1 << shift < a.cache.block_size) ++shift;
  return {scratch.partial, scratch.counters, static_cast<int32_t>(std::max<int64_t>(splits, 1)), shift};
}

bool can_split(const Args& a, DType q_type) {
  return q_type == a.cache.dtype && q_type != DType::kF32 &&
         (a.cache.head_dim == 64 || a.cache.head_dim == 128) &&
         (a.cache.block_size & (a.cache.block_size - 1)) == 0;
}

Args args_of(const BatchView& batch, const AttentionArgs& args) {
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
          {}};
}

template <class T>
void launch_split(const Queue& queue, const Args& a, const AttentionScratch& scratch) {
  const Split split = plan_split(queue, a, scratch);
  const dim3 grid(static_cast<unsigned>(a.batch.num_tokens), static_cast<unsigned>(split.splits),
                  static_cast<unsigned>(a.cache.num_kv_heads));
  const auto kernel = a.cache.head_dim == 64 ? attend_split<T, 64> : attend_split<T, 128>;
  launch(queue, "attention", kernel, grid, 32 * kWarps, 0, a, split);
}

}  // namespace

void attention(const Queue& queue, const BatchView& batch, const AttentionArgs& args,
               const AttentionScratch& scratch) {
  const Args a = args_of(batch, args);
  with_type(args.q.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if constexpr (!std::is_same_v<T, float>)
      if (can_split(a, args.q.dtype)) return launch_split<T>(queue, a, scratch);
    with_type(args.cache.dtype, [&](auto cache_tag) {
      using C = typename decltype(cache_tag)::Type;
      const dim3 grid(static_cast<unsigned>(batch.num_tokens), static_cast<unsigned>(args.num_q_heads));
      launch(queue, "attention", attend_any<T, C>, grid, kAnyThreads, 0, a);
    });
  });
}

bool rotate_and_attend(const Queue& queue, const BatchView& batch, const AttentionArgs& args,
                       const Rotation& rotation, const AttentionScratch& scratch) {
  Args a = args_of(batch, args);
  if (!can_split(a, args.q.dtype)) return false;
  a.rotation = rotation;
  args.q.dtype == DType::kF16 ? launch_split<__half>(queue, a, scratch)
                              : launch_split<__nv_bfloat16>(queue, a, scratch);
  return true;
}

}  // namespace whippet::cuda
