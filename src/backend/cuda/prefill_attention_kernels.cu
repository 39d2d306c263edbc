// softmax(q k^T * scale) v over the paged cache for sequences that have many rows in a step: fp16 or bf16,
// head_dim 64 or 128, blocks of a power of two. A block takes 64 or 128 consecutive rows and a query head,
// and of each sequence among them that is a prompt goes through its keys in tiles of 64 at absolute
// positions, which asynchronous copies bring to shared memory, one tile ahead. Each warp has 16 or 32 rows;
// both products run on the tensor cores with the rows as the operand of 16, and the weights of the softmax go
// in as a sum of two numbers of 16 bits, so that nothing is lost. (Dao et al. 2022, FlashAttention; the
// online softmax of Milakov and Gimelshein 2018.) A row's result does not depend on how a prompt is cut into
// steps. Operations a row, key and head: 6 head_dim multiply-adds.
#include "backend/cuda/attention_tiles.cuh"
#include "backend/cuda/copy.cuh"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kKeys = 64;  // of a tile
constexpr int kStages = 2;

template <class T_, int kDim_, int kTiles_>
struct Shape {
  using T = T_;
  static constexpr int kDim = kDim_;
  static constexpr int kTiles = kTiles_;  // of 16 rows, a warp
  static constexpr int kRows = 16 * kTiles * kWarps;
  static constexpr int kChunks = kDim / 8;  // of 16 bytes in a key
  static constexpr int kTileBytes = kKeys * kDim * 2;
  // Of the copies of a tile: with two tiles of rows there are no registers left for all at once.
  static constexpr int kUnroll = kTiles == 1 ? kKeys * kChunks / kThreads : 1;
  static constexpr int kShared = kStages * 2 * kTileBytes;
};

// Rows [begin, end) of one sequence and the keys [first, last) that any of them sees.
struct Run {
  int32_t begin, end, first, last;
  int32_t least;  // position of its first row
  const int32_t* table;
};

// Brings tiles of one KV head to shared memory.
template <class S>
struct Loader {
  const AttendArgs& a;
  const Run& run;
  int32_t kv_head, shift;
  uint32_t ring;

  __device__ __forceinline__ void copy(int32_t tile, int stage) const {
    using T = typename S::T;
    const uint32_t at = ring + static_cast<uint32_t>(stage * 2 * S::kTileBytes);
#pragma unroll S::kUnroll
    for (int i = 0; i < kKeys * S::kChunks / kThreads; ++i) {
      const int32_t index = i * kThreads + static_cast<int32_t>(threadIdx.x);
      const int32_t key = index / S::kChunks, chunk = index % S::kChunks, t = tile + key;
      const bool present = t >= run.first && t < run.last;
      const int64_t head =
          static_cast<int64_t>(present ? __ldg(run.table + (t >> shift)) : 0) * a.cache.num_kv_heads +
          kv_head;
      const int64_t from = present ? ((head << shift) + (t & ((1 << shift) - 1))) * S::kDim + chunk * 8 : 0;
      const auto to = at + static_cast<uint32_t>(key * S::kDim * 2 + (chunk ^ (key & 7)) * 16);
      copy_sixteen(to, static_cast<const T*>(a.cache.k) + from, present);
      copy_sixteen(to + S::kTileBytes, static_cast<const T*>(a.cache.v) + from, present);
    }
  }
};

// 16 rows of a warp: a lane has those number g = lane / 4 and g + 8, and of each the columns 2 (lane % 4),
// the next, + 8, + 9, ...
template <class S>
class RowTile {
 public:
  using T = typename S::T;

  // Rows from `row` on; those outside of the run are zeros.
  __device__ void load_queries(const AttendArgs& a, const Run& run, int32_t row, int32_t head) {
    const int32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int32_t r = row + lane / 4 + 8 * half;
      const bool present = r >= run.begin && r < run.end;
      position_[half] = present ? run.least + r - run.begin : -1;
      const T* from = static_cast<const T*>(a.q) + (present ? r : run.begin) * a.q_stride +
                      static_cast<int64_t>(head) * S::kDim + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < S::kDim / 8; ++i) {
        const T pair[2] = {from[8 * i], from[8 * i + 1]};
        q_[i / 2][i % 2 * 2 + half] = present ? *reinterpret_cast<const uint32_t*>(pair) : 0;
      }
      largest_[half] = kNone;
      total_[half] = 0;
    }
#pragma unroll
    for (int i = 0; i < S::kDim / 8; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) sums_[i][j] = 0;
  }

  // Scores of 16 keys, of which `k` holds dimensions 16 i ... 16 i + 15.
  __device__ __forceinline__ void score(int m, int i, const uint32_t (&k)[4]) {
    mma<T>(scores_[2 * m], q_[i][0], q_[i][1], q_[i][2], q_[i][3], k[0], k[1]);
    mma<T>(scores_[2 * m + 1], q_[i][0], q_[i][1], q_[i][2], q_[i][3], k[2], k[3]);
  }
  __device__ __forceinline__ void clear_scores() {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) scores_[n][j] = 0;
  }

  // Turns the scores of the tile whose first key is number `tile` into weights. `whole`: every row sees all.
  __device__ __forceinline__ void weigh(const AttendArgs& a, int32_t tile, bool whole, float scale) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int32_t first = first_key(a, position_[half]), last = position_[half];
      float largest = largest_[half];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int j = 2 * half; j < 2 * half + 2; ++j) {
          const int32_t key = tile + 8 * n + static_cast<int32_t>(threadIdx.x % 4) * 2 + j % 2;
          const bool seen = whole || (key >= first && key <= last);
          scores_[n][j] = seen ? scores_[n][j] * scale : kNone;
          largest = fmaxf(largest, scores_[n][j]);
        }
      }
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
      const float shrink = largest_[half] == kNone ? 0 : exp2_of(largest_[half] - largest);
      largest_[half] = largest;
      float total = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int j = 2 * half; j < 2 * half + 2; ++j) {
          scores_[n][j] = !whole && scores_[n][j] == kNone ? 0 : exp2_of(scores_[n][j] - largest);
          total += scores_[n][j];
        }
      }
      total_[half] = fmaf(total_[half], shrink, total);
#pragma unroll
      for (int i = 0; i < S::kDim / 8; ++i) {
        sums_[i][2 * half] *= shrink;
        sums_[i][2 * half + 1] *= shrink;
      }
    }
  }

  // The weights of keys 16 m ... 16 m + 15 as an operand.
  __device__ __forceinline__ void take_weights(int m, uint32_t (&high)[4], uint32_t (&low)[4]) const {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float* pair = &scores_[2 * m + j / 2][j % 2 * 2];
      const Halves<T> halves = split_pair<T>(pair[0], pair[1]);
      high[j] = halves.high;
      low[j] = halves.low;
    }
  }
  // Adds dimensions 16 i ... 16 i + 15 of the values of these keys.
  __device__ __forceinline__ void add(int i, const uint32_t (&w)[4], const uint32_t (&v)[4]) {
    mma<T>(sums_[2 * i], w[0], w[1], w[2], w[3], v[0], v[1]);
    mma<T>(sums_[2 * i + 1], w[0], w[1], w[2], w[3], v[2], v[3]);
  }

  __device__ void write(const AttendArgs& a, int32_t row, int32_t head) {
    const int32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float total = total_[half];
      total += __shfl_xor_sync(~0u, total, 1);
      total += __shfl_xor_sync(~0u, total, 2);
      if (position_[half] < 0) continue;
      const float share = total > 0 ? 1 / total : 0;
      T* to = static_cast<T*>(a.out) + (row + lane / 4 + 8 * half) * a.out_stride +
              static_cast<int64_t>(head) * S::kDim + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < S::kDim / 8; ++i) {
        to[8 * i] = from_float<T>(sums_[i][2 * half] * share);
        to[8 * i + 1] = from_float<T>(sums_[i][2 * half + 1] * share);
      }
    }
  }

 private:
  uint32_t q_[S::kDim / 16][4];
  int32_t position_[2];
  float largest_[2], total_[2];  // total: of this lane's keys
  float scores_[kKeys / 8][4], sums_[S::kDim / 8][4];
};

// Takes in one tile.
template <class S>
__device__ __forceinline__ void take_tile(const AttendArgs& a, uint32_t keys, int32_t tile, bool whole,
                                          float scale, RowTile<S> (&rows)[S::kTiles]) {
#pragma unroll
  for (int n = 0; n < S::kTiles; ++n) rows[n].clear_scores();
#pragma unroll
  for (int m = 0; m < kKeys / 16; ++m) {
#pragma unroll
    for (int i = 0; i < S::kDim / 16; ++i) {
      uint32_t k[4];
      load_matrices(matrix_at<S::kDim>(keys, 16 * m, 2 * i, false), k);
#pragma unroll
      for (int n = 0; n < S::kTiles; ++n) rows[n].score(m, i, k);
    }
  }
#pragma unroll
  for (int n = 0; n < S::kTiles; ++n) rows[n].weigh(a, tile, whole, scale);
#pragma unroll
  for (int m = 0; m < kKeys / 16; ++m) {
    uint32_t high[S::kTiles][4], low[S::kTiles][4];
#pragma unroll
    for (int n = 0; n < S::kTiles; ++n) rows[n].take_weights(m, high[n], low[n]);
#pragma unroll
    for (int i = 0; i < S::kDim / 16; ++i) {
      uint32_t v[4];
      load_transposed(matrix_at<S::kDim>(keys + S::kTileBytes, 16 * m, 2 * i, true), v);
#pragma unroll
      for (int n = 0; n < S::kTiles; ++n) {
        rows[n].add(i, high[n], v);
        rows[n].add(i, low[n], v);
      }
    }
  }
}

// All keys of a run, for the rows of this block.
template <class S>
__device__ void attend_run(const AttendArgs& a, const Run& run, int32_t row, int32_t head, int32_t shift,
                           uint32_t ring) {
  const int32_t warp_row = row + static_cast<int32_t>(threadIdx.x / 32) * 16 * S::kTiles;
  const Loader<S> loader{a, run, a.kv_head_of_q[head], shift, ring};
  const int32_t begin = run.first / kKeys * kKeys;
  loader.copy(begin, 0);
  commit_copies();
  RowTile<S> rows[S::kTiles];
#pragma unroll
  for (int n = 0; n < S::kTiles; ++n) rows[n].load_queries(a, run, warp_row + 16 * n, head);
  const float scale = a.scale * 1.44269504f;  // 1 / log 2
  // Positions of this warp's rows, and the keys that one of them sees.
  const int32_t low = run.least + max(warp_row - run.begin, 0);
  const int32_t high = run.least + min(warp_row + 16 * S::kTiles, run.end) - 1 - run.begin;
  const int32_t first = first_key(a, low);
  int stage = 0;
  for (int32_t tile = begin; tile < run.last; tile += kKeys) {
    if (tile + kKeys < run.last) loader.copy(tile + kKeys, stage ^ 1);
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    if (tile <= high && tile + kKeys > first) {
      const bool whole = tile + kKeys - 1 <= low && tile >= first_key(a, high) && tile + kKeys <= run.last;
      take_tile<S>(a, ring + static_cast<uint32_t>(stage * 2 * S::kTileBytes), tile, whole, scale, rows);
    }
    __syncthreads();
    stage ^= 1;
  }
  wait_copies<0>();
#pragma unroll
  for (int n = 0; n < S::kTiles; ++n) rows[n].write(a, warp_row + 16 * n, head);
}

// Grid: tiles of rows (the last, which see most, first), query heads.
template <class S>
__global__ void __launch_bounds__(kThreads, 2) attend_prompts_kernel(AttendArgs a, int32_t shift) {
  extern __shared__ __align__(128) unsigned char rings[];
  wait_for_inputs();
  let_next_start();
  const int32_t tile = (gridDim.x - 1 - blockIdx.x) * S::kRows,
                end = min(a.batch.num_tokens, tile + S::kRows);
  for (int32_t r = tile; r < end;) {
    const int32_t seq = a.batch.seq_of_token[r];
    if (!is_prompt(a.batch, seq)) {
      ++r;
      continue;
    }
    Run run;
    run.begin = r;
    run.end = min(end, max(a.batch.row_begin[seq + 1], r + 1));
    run.least = a.batch.positions[r];
    run.first = first_key(a, run.least);
    run.last = run.least + run.end - run.begin;
    run.table = a.batch.block_table + static_cast<int64_t>(seq) * a.batch.max_blocks_per_seq;
    attend_run<S>(a, run, tile, blockIdx.y, shift, static_cast<uint32_t>(__cvta_generic_to_shared(rings)));
    r = run.end;
  }
}

template <class S>
void launch_shape(const Queue& queue, const AttendArgs& a) {
  int32_t shift = 0;
  while (1 << shift < a.cache.block_size) ++shift;
  const dim3 grid(static_cast<unsigned>(ceil_div(a.batch.num_tokens, S::kRows)),
                  static_cast<unsigned>(a.num_q_heads));
  prefer_shared(attend_prompts_kernel<S>, S::kShared, "attention");
  launch(queue, "attention", attend_prompts_kernel<S>, grid, kThreads, S::kShared, a, shift);
}

template <class T>
void launch_type(const Queue& queue, const AttendArgs& a) {
  if (a.cache.head_dim == 128) return launch_shape<Shape<T, 128, 1>>(queue, a);
  // Rows of a warp read keys and values from shared memory together, where there are enough of them.
  using Large = Shape<T, 64, 2>;
  const bool many = int64_t{a.batch.num_tokens} * a.num_q_heads >= int64_t{2} * queue.num_sms * Large::kRows;
  many ? launch_shape<Large>(queue, a) : launch_shape<Shape<T, 64, 1>>(queue, a);
}

}  // namespace

void attend_prompts(const Queue& queue, const AttendArgs& a, DType dtype) {
  dtype == DType::kF16 ? launch_type<__half>(queue, a) : launch_type<__nv_bfloat16>(queue, a);
}

}  // namespace whippet::cuda
