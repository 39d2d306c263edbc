// softmax(q k^T * scale) v over the paged cache for sequences that have many rows in a step: fp16 or bf16,
// head_dim 64 or 128, blocks of a power of two, scale above 0. A block takes 64 or 128 consecutive rows and a
// query head, and of each sequence among them that is a prompt goes through its keys in tiles of 64 at
// absolute positions, which asynchronous copies bring to shared memory, one or two tiles ahead. Each warp has
// 16 or 32 rows; both products run on the tensor cores with the rows as the operand of 16. (Dao et al. 2022,
// FlashAttention; the online softmax of Milakov and Gimelshein 2018.) Where rows are few, the keys are cut
// into pieces of a block each, which a second kernel adds up in fp32 in the order of the context.
//
// The weights p of the softmax go into the second product rounded to 16 bits, p (1 + d) with |d| <= u (2^-8
// for bf16, 2^-11 for fp16), and so they do into their sum. The result is then o + sum p d (v - o) /
// sum p (1 + d), with o what it should be: off by u / (1 - u) sum p |v - o| / sum p at most, and nothing
// where all v are equal. fp16 weights are multiplied by 2^12, so that those that matter are not subnormal.
// Operations a row, key and head: 4 head_dim multiply-adds.
#include <algorithm>

#include "backend/cuda/attention_tiles.cuh"
#include "backend/cuda/copy.cuh"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kKeys = 64;       // of a tile
constexpr int kBlocks = 2;      // that find room on a multiprocessor
constexpr int kMaxPieces = 16;  // of the keys
constexpr int kMinTiles = 4;    // of a piece

template <class T_, int kDim_, int kTiles_>
struct Shape {
  using T = T_;
  static constexpr int kDim = kDim_;
  static constexpr int kTiles = kTiles_;  // of 16 rows, a warp
  static constexpr int kRows = 16 * kTiles * kWarps;
  static constexpr int kChunks = kDim / 8;  // of 16 bytes in a key
  static constexpr int kTileBytes = kKeys * kDim * 2;
  static constexpr int kCopies = kKeys * kChunks / kThreads;  // of a thread, for K and for V
  static constexpr int kStages = kDim == 64 ? 3 : 2;
  static constexpr int kShared = kStages * 2 * kTileBytes;
  static constexpr int kPitch = kDim + 2;  // floats of a piece of a row: sums, largest, total
  static constexpr bool kIsHalf = std::is_same_v<T, __half>;
  static constexpr float kRaise = kIsHalf ? 12 : 0;  // log 2 of what weights are multiplied by
  static constexpr uint32_t kOnes = kIsHalf ? 0x3c003c00u : 0x3f803f80u;
};

// How keys are cut: partial [rows, query heads, pieces, kPitch].
struct Cut {
  float* partial;
  int32_t pieces, block_shift;  // most of a row; log2 of the cache's block size
};

// Rows [begin, end) of one sequence in a block and the keys [first, last) that any of them sees; the keys of
// piece i begin at origin + i * step.
struct Run {
  int32_t begin, end, first, last, origin, step, pieces;
  int32_t least;  // position of its first row
};
// The run that row r is in.
template <class S>
__device__ Run run_of(const AttendArgs& a, const Cut& cut, int32_t r, int32_t seq) {
  const int32_t block = r / S::kRows * S::kRows;
  Run run;
  run.begin = max(block, a.batch.row_begin[seq]);
  run.end = min(min(block + S::kRows, a.batch.num_tokens), max(a.batch.row_begin[seq + 1], r + 1));
  run.least = a.batch.positions[run.begin];
  run.first = first_key(a, run.least);
  run.last = run.least + run.end - run.begin;
  run.origin = run.first / kKeys * kKeys;
  const int32_t tiles = (run.last - run.origin + kKeys - 1) / kKeys;
  const int32_t each = cut.pieces == 1 ? tiles : max(kMinTiles, (tiles + cut.pieces - 1) / cut.pieces);
  run.step = each * kKeys;
  run.pieces = (tiles + each - 1) / each;
  return run;
}

// Brings tiles of one KV head to shared memory, one after another.
template <class S>
struct Loader {
  const AttendArgs& a;
  const Run& run;
  const int32_t* table;
  int32_t kv_head, shift;
  uint32_t ring;
  int32_t blocks[S::kCopies] = {};  // of the cache, of the next tile

  static __device__ __forceinline__ int32_t key_of(int i) {
    return (i * kThreads + static_cast<int32_t>(threadIdx.x)) / S::kChunks;
  }
  __device__ __forceinline__ bool present(int32_t t) const { return t >= run.first && t < run.last; }
  __device__ __forceinline__ void look_up(int32_t tile) {
#pragma unroll
    for (int i = 0; i < S::kCopies; ++i) {
      const int32_t t = tile + key_of(i);
      blocks[i] = present(t) ? __ldg(table + (t >> shift)) : 0;
    }
  }
  __device__ __forceinline__ void copy(int32_t tile, int stage) {
    using T = typename S::T;
    const uint32_t at = ring + static_cast<uint32_t>(stage * 2 * S::kTileBytes);
    const int32_t chunk = threadIdx.x % S::kChunks;
#pragma unroll
    for (int i = 0; i < S::kCopies; ++i) {
      const int32_t key = key_of(i), t = tile + key;
      const int64_t head = static_cast<int64_t>(blocks[i]) * a.cache.num_kv_heads + kv_head;
      const int64_t from =
          present(t) ? ((head << shift) + (t & ((1 << shift) - 1))) * S::kDim + chunk * 8 : 0;
      const auto to = at + static_cast<uint32_t>(key * S::kDim * 2 + (chunk ^ (key & 7)) * 16);
      copy_sixteen(to, static_cast<const T*>(a.cache.k) + from, present(t));
      copy_sixteen(to + S::kTileBytes, static_cast<const T*>(a.cache.v) + from, present(t));
    }
    look_up(tile + kKeys);
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
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      totals_[j] = 0;
#pragma unroll
      for (int i = 0; i < S::kDim / 8; ++i) sums_[i][j] = 0;
    }
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

  // Turns the scores of the tile whose first key is number `tile` into weights. kWhole: every row sees all.
  template <bool kWhole>
  __device__ __forceinline__ void weigh(const AttendArgs& a, int32_t tile, float scale) {
    float shrink[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int32_t first = first_key(a, position_[half]), last = position_[half];
      float largest = largest_[half];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int j = 2 * half; j < 2 * half + 2; ++j) {
          const int32_t key = tile + 8 * n + static_cast<int32_t>(threadIdx.x % 4) * 2 + j % 2;
          if (!kWhole && (key < first || key > last)) scores_[n][j] = kNone;
          largest = fmaxf(largest, scores_[n][j]);
        }
      }
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
      shrink[half] = exp2_of((largest_[half] - largest) * scale);
      largest_[half] = largest;
      // kNone weighs nothing, also where a row has seen no key yet.
      const float base = S::kRaise - (largest == kNone ? 0 : largest * scale);
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
        weights_[n / 2][n % 2 * 2 + half] = pack(exp2_of(fmaf(scores_[n][2 * half], scale, base)),
                                                 exp2_of(fmaf(scores_[n][2 * half + 1], scale, base)));
    }
    if (__ballot_sync(~0u, shrink[0] != 1 || shrink[1] != 1) == 0) return;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      totals_[j] *= shrink[j / 2];
#pragma unroll
      for (int i = 0; i < S::kDim / 8; ++i) sums_[i][j] *= shrink[j / 2];
    }
  }

  // Adds the weights of keys 16 m ... 16 m + 15.
  __device__ __forceinline__ void add_total(int m) {
    const uint32_t(&w)[4] = weights_[m];
    mma<T>(totals_, w[0], w[1], w[2], w[3], S::kOnes, S::kOnes);
  }
  // Adds dimensions 16 i ... 16 i + 15 of the values of these keys.
  __device__ __forceinline__ void add(int m, int i, const uint32_t (&v)[4]) {
    const uint32_t(&w)[4] = weights_[m];
    mma<T>(sums_[2 * i], w[0], w[1], w[2], w[3], v[0], v[1]);
    mma<T>(sums_[2 * i + 1], w[0], w[1], w[2], w[3], v[2], v[3]);
  }

  __device__ void write(const AttendArgs& a, int32_t row, int32_t head) const {
    const int32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (position_[half] < 0) continue;
      const float total = totals_[2 * half], share = total > 0 ? 1 / total : 0;
      T* to = static_cast<T*>(a.out) + (row + lane / 4 + 8 * half) * a.out_stride +
              static_cast<int64_t>(head) * S::kDim + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < S::kDim / 8; ++i) {
        to[8 * i] = from_float<T>(sums_[i][2 * half] * share);
        to[8 * i + 1] = from_float<T>(sums_[i][2 * half + 1] * share);
      }
    }
  }
  __device__ void write_piece(const AttendArgs& a, const Cut& cut, int32_t row, int32_t head,
                              float scale) const {
    const int32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (position_[half] < 0) continue;
      const int64_t r = row + lane / 4 + 8 * half;
      float* to = cut.partial +
                  ((r * a.num_q_heads + head) * cut.pieces + static_cast<int32_t>(blockIdx.z)) * S::kPitch;
#pragma unroll
      for (int i = 0; i < S::kDim / 8; ++i)
        *reinterpret_cast<float2*>(to + 8 * i + lane % 4 * 2) =
            make_float2(sums_[i][2 * half], sums_[i][2 * half + 1]);
      if (lane % 4 != 0) continue;
      to[S::kDim] = largest_[half] == kNone ? kNone : largest_[half] * scale;
      to[S::kDim + 1] = totals_[2 * half];
    }
  }

 private:
  static __device__ __forceinline__ uint32_t pack(float x, float y) {
    if constexpr (S::kIsHalf) {
      const __half2 pair = __floats2half2_rn(x, y);
      return *reinterpret_cast<const uint32_t*>(&pair);
    } else {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
      return *reinterpret_cast<const uint32_t*>(&pair);
    }
  }

  uint32_t q_[S::kDim / 16][4], weights_[kKeys / 16][4];
  int32_t position_[2];
  float largest_[2], totals_[4];  // totals: the same in all columns
  float scores_[kKeys / 8][4], sums_[S::kDim / 8][4];
};

// Takes in one tile.
template <class S, bool kWhole>
__device__ __forceinline__ void take_tile(const AttendArgs& a, uint32_t keys, int32_t tile, float scale,
                                          RowTile<S> (&rows)[S::kTiles]) {
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
  for (int n = 0; n < S::kTiles; ++n) rows[n].template weigh<kWhole>(a, tile, scale);
#pragma unroll
  for (int m = 0; m < kKeys / 16; ++m) {
#pragma unroll
    for (int n = 0; n < S::kTiles; ++n) rows[n].add_total(m);
#pragma unroll
    for (int i = 0; i < S::kDim / 16; ++i) {
      uint32_t v[4];
      load_transposed(matrix_at<S::kDim>(keys + S::kTileBytes, 16 * m, 2 * i, true), v);
#pragma unroll
      for (int n = 0; n < S::kTiles; ++n) rows[n].add(m, i, v);
    }
  }
}

// The keys of a run that are this block's, for its rows.
template <class S>
__device__ void attend_run(const AttendArgs& a, const Cut& cut, const Run& run, const int32_t* table,
                           int32_t row, int32_t head, uint32_t ring) {
  const int32_t begin = run.origin + static_cast<int32_t>(blockIdx.z) * run.step;
  const int32_t end = min(run.last, begin + run.step);
  if (begin >= end) return;
  const int32_t warp_row = row + static_cast<int32_t>(threadIdx.x / 32) * 16 * S::kTiles;
  Loader<S> loader{a, run, table, a.kv_head_of_q[head], cut.block_shift, ring};
  loader.look_up(begin);
#pragma unroll
  for (int i = 0; i < S::kStages - 1; ++i) {
    if (begin + i * kKeys < end) loader.copy(begin + i * kKeys, i);
    commit_copies();
  }
  RowTile<S> rows[S::kTiles];
#pragma unroll
  for (int n = 0; n < S::kTiles; ++n) rows[n].load_queries(a, run, warp_row + 16 * n, head);
  const float scale = a.scale * 1.44269504f;  // 1 / log 2
  // Positions of this warp's rows, and the keys that one of them sees.
  const int32_t low = run.least + max(warp_row - run.begin, 0);
  const int32_t high = run.least + min(warp_row + 16 * S::kTiles, run.end) - 1 - run.begin;
  const int32_t first = first_key(a, low), first_of_high = first_key(a, high);
  int stage = 0;
  for (int32_t tile = begin; tile < end; tile += kKeys) {
    wait_copies<S::kStages - 2>();
    __syncthreads();  // all see this tile, and none is at the one before it any more
    const int32_t ahead = tile + (S::kStages - 1) * kKeys;
    if (ahead < end) loader.copy(ahead, stage == 0 ? S::kStages - 1 : stage - 1);
    commit_copies();
    const uint32_t keys = ring + static_cast<uint32_t>(stage * 2 * S::kTileBytes);
    if (tile + kKeys - 1 <= low && tile >= first_of_high) {
      take_tile<S, true>(a, keys, tile, scale, rows);
    } else if (tile <= high && tile + kKeys > first) {
      take_tile<S, false>(a, keys, tile, scale, rows);
    }
    stage = stage == S::kStages - 1 ? 0 : stage + 1;
  }
  wait_copies<0>();
  __syncthreads();
#pragma unroll
  for (int n = 0; n < S::kTiles; ++n) {
    if (run.pieces == 1) {
      rows[n].write(a, warp_row + 16 * n, head);
    } else {
      rows[n].write_piece(a, cut, warp_row + 16 * n, head, scale);
    }
  }
}

// Grid: query heads, tiles of rows (the last, which see most, first), pieces of the keys.
template <class S>
__global__ void __launch_bounds__(kThreads, kBlocks) attend_prompts_kernel(AttendArgs a, Cut cut) {
  extern __shared__ __align__(128) unsigned char rings[];
  wait_for_inputs();
  let_next_start();
  const int32_t tile = (gridDim.y - 1 - blockIdx.y) * S::kRows,
                end = min(a.batch.num_tokens, tile + S::kRows);
  for (int32_t r = tile; r < end;) {
    const int32_t seq = a.batch.seq_of_token[r];
    if (!is_prompt(a.batch, seq)) {
      ++r;
      continue;
    }
    const Run run = run_of<S>(a, cut, r, seq);
    attend_run<S>(a, cut, run, a.batch.block_table + static_cast<int64_t>(seq) * a.batch.max_blocks_per_seq,
                  tile, blockIdx.x, static_cast<uint32_t>(__cvta_generic_to_shared(rings)));
    r = run.end;
  }
}

// Adds up the pieces. Grid: rows, query heads by kWarps.
template <class S>
__global__ void __launch_bounds__(kThreads) add_pieces_kernel(AttendArgs a, Cut cut) {
  wait_for_inputs();
  let_next_start();
  const int32_t r = blockIdx.x, seq = a.batch.seq_of_token[r], lane = threadIdx.x % 32;
  const int32_t head = static_cast<int32_t>(blockIdx.y * kWarps + threadIdx.x / 32);
  if (head >= a.num_q_heads || !is_prompt(a.batch, seq)) return;
  const int32_t pieces = run_of<S>(a, cut, r, seq).pieces;
  if (pieces == 1) return;
  const float* from = cut.partial + (static_cast<int64_t>(r) * a.num_q_heads + head) * cut.pieces * S::kPitch;
  const float* own = from + min(lane, pieces - 1) * S::kPitch + S::kDim;
  const float largest = lane < pieces ? __ldcg(own) : kNone, all = warp_max(largest);
  const float weight = largest == kNone ? 0 : exp2_of(largest - all);
  const float total = warp_sum(lane < pieces ? weight * __ldcg(own + 1) : 0);
  const float share = total > 0 ? weight / total : 0;
  float2 sums[S::kDim / 64] = {};
#pragma unroll 4
  for (int32_t p = 0; p < pieces; ++p) {
    const float by = __shfl_sync(~0u, share, p);
#pragma unroll
    for (int i = 0; i < S::kDim / 64; ++i) {
      const float2 pair = __ldcg(reinterpret_cast<const float2*>(from + p * S::kPitch + 64 * i + 2 * lane));
      sums[i].x = fmaf(by, pair.x, sums[i].x), sums[i].y = fmaf(by, pair.y, sums[i].y);
    }
  }
  auto* to = static_cast<typename S::T*>(a.out) + r * a.out_stride + static_cast<int64_t>(head) * S::kDim;
#pragma unroll
  for (int i = 0; i < S::kDim / 64; ++i) {
    to[64 * i + 2 * lane] = from_float<typename S::T>(sums[i].x);
    to[64 * i + 2 * lane + 1] = from_float<typename S::T>(sums[i].y);
  }
}

template <class S>
void launch_shape(const Queue& queue, const AttendArgs& a, const AttentionScratch& scratch) {
  Cut cut{scratch.partial, 1, 0};
  while (1 << cut.block_shift < a.cache.block_size) ++cut.block_shift;
  const int32_t tiles = ceil_div(a.batch.num_tokens, S::kRows), blocks = tiles * a.num_q_heads;
  const int64_t floats = int64_t{a.batch.num_tokens} * a.num_q_heads * S::kPitch;
  cut.pieces = static_cast<int32_t>(std::clamp<int64_t>(
      std::min<int64_t>(kBlocks * queue.num_sms / blocks, static_cast<int64_t>(scratch.floats) / floats), 1,
      kMaxPieces));
  const dim3 grid(static_cast<unsigned>(a.num_q_heads), static_cast<unsigned>(tiles),
                  static_cast<unsigned>(cut.pieces));
  prefer_shared(attend_prompts_kernel<S>, S::kShared, "attention");
  launch(queue, "attention", attend_prompts_kernel<S>, grid, kThreads, S::kShared, a, cut);
  if (cut.pieces == 1) return;
  const dim3 rows(static_cast<unsigned>(a.batch.num_tokens),
                  static_cast<unsigned>(ceil_div(a.num_q_heads, kWarps)));
  launch(queue, "attention", add_pieces_kernel<S>, rows, kThreads, 0, a, cut);
}

template <class T>
void launch_type(const Queue& queue, const AttendArgs& a, const AttentionScratch& scratch) {
  if (a.cache.head_dim == 128) return launch_shape<Shape<T, 128, 1>>(queue, a, scratch);
  // With 32 rows a warp reads keys and values from shared memory half as often, where prompts are that long.
  const bool many = a.batch.num_tokens >= 1024 || a.batch.num_tokens > 64 * a.batch.num_seqs;
  many ? launch_shape<Shape<T, 64, 2>>(queue, a, scratch) : launch_shape<Shape<T, 64, 1>>(queue, a, scratch);
}

}  // namespace

void attend_prompts(const Queue& queue, const AttendArgs& a, DType dtype, const AttentionScratch& scratch) {
  dtype == DType::kF16 ? launch_type<__half>(queue, a, scratch)
                       : launch_type<__nv_bfloat16>(queue, a, scratch);
}

}  // namespace whippet::cuda
