// softmax(q k^T * scale) v over the paged cache for fp16 or bf16, head_dim 64 or 128, blocks of a power of
// two. A block takes a row, a KV head and a piece of the context, for up to eight query heads of that KV head
// at once, so that K and V are read once for them. Each warp goes through tiles of K and V on its own, which
// asynchronous copies bring to shared memory, two or three ahead. Both products run on the tensor
// cores, with keys (then: dimensions of the values) as the operand of 16 rows and the heads as that of 8
// columns; the weights of the softmax go in as a sum of two numbers of 16 bits, so that nothing is lost. The
// warps are added up at the end, and the block that ends last adds up the pieces of its row, in the order of
// the context. With a Rotation the rows' own keys are made here, and where nothing else can have changed
// the cache the other keys are under way before the kernels ahead end. Bytes: the row's K and V.
#include <algorithm>

#include "backend/cuda/attention_tiles.cuh"
#include "backend/cuda/copy.cuh"
#include "backend/cuda/mma.cuh"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int kHeads = 8;       // query heads that share a reading of K and V
constexpr int kMaxSplits = 32;  // pieces of a row
constexpr int kOrigin = 32;     // pieces begin at multiples of this
constexpr int kFewWarps = 4, kManyWarps = 8;
// Keys below which a piece is not worth adding up: about what the warps of a block copy ahead.
constexpr int kMinKeys = 640;

template <class T_, int kDim_, int kWarps_>
struct Shape {
  using T = T_;
  static constexpr int kDim = kDim_;
  static constexpr int kWarps = kWarps_;
  static constexpr int kThreads = 32 * kWarps;
  // Where there are many blocks, so little that four find room on a multiprocessor: with 256 rows of two KV
  // heads an H200 then runs all of them at once.
  static constexpr bool kSmall = kDim == 64 && kWarps == kFewWarps;
  static constexpr int kBlocks = kWarps == kManyWarps ? 1 : kSmall ? 4 : 3;
  static constexpr int kTileBytes = kSmall ? 2048 : 4096;  // of K, and of V
  static constexpr int kStages = kSmall ? 3 : 2;           // tiles of a warp under way
  static constexpr int kKeys = kTileBytes / 2 / kDim;      // of a tile
  static constexpr int kChunks = kDim / 8;                 // of 16 bytes in a key
  static constexpr int kPitch = kDim + 4;                  // of the sums of a head
  static constexpr int kRing = kStages * 2 * kTileBytes;
  static_assert(kRing >= kHeads * kPitch * 4);
};

// What the warps of a block share.
template <class S>
struct Piece {
  typename S::T q[kHeads][S::kDim + 8];
  float largest[S::kWarps][kHeads], total[S::kWarps][kHeads];
  float shares[kHeads][kMaxSplits];  // of each piece in the whole
  int32_t heads[kHeads];             // query heads of this pass
  int32_t num_heads, all_heads, pass, is_last;
};

struct Split {
  float* partial;  // [rows, splits, num_q_heads, 2 + head_dim]: largest, total, sums
  int32_t* counters;
  int32_t splits, block_shift;  // most pieces a row; log2 of the cache's block size
};

// The keys [begin, end) of this block, one of `pieces` that the row is cut into; own: the row's own key,
// where it is made here, else -1.
struct Share {
  int32_t begin, end, pieces, own;
};
__device__ Share share_of(const AttendArgs& a, const Split& split, int32_t position) {
  const int32_t first = first_key(a, position), origin = first / kOrigin * kOrigin;
  const int32_t span = position + 1 - origin;
  const int32_t even = (span + split.splits - 1) / split.splits;
  const int32_t keys = max(split.splits > 1 ? kMinKeys : kOrigin, (even + kOrigin - 1) / kOrigin * kOrigin);
  const int32_t begin = origin + static_cast<int32_t>(blockIdx.y) * keys;
  return {max(first, begin), min(position + 1, begin + keys), max(1, (span + keys - 1) / keys),
          a.rotation.cos_sin != nullptr ? position : -1};
}

// Query heads number [8 * pass, 8 * pass + 8) of those that read kv_head; true where there are any. Which
// they are never changes, so that this may come before the wait for inputs.
template <class S>
__device__ bool find_heads(const AttendArgs& a, int32_t kv_head, int32_t pass, Piece<S>& piece) {
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
template <class S>
__device__ __forceinline__ void rotated(const AttendArgs& a, int32_t r, const typename S::T* head, int32_t d,
                                        typename S::T& low, typename S::T& high) {
  const float* angles = a.rotation.cos_sin + r * a.rotation.cos_sin_stride;
  float turned, other;
  rotate_pair(to_float(__ldcg(head + d)), to_float(__ldcg(head + d + S::kDim / 2)), __ldcg(angles + d),
              __ldcg(angles + d + S::kDim / 2), turned, other);
  low = from_float<typename S::T>(turned);
  high = from_float<typename S::T>(other);
}

// The row's own key and value, spread over the lanes of the warp that comes to it: elements d and
// d + kDim / 2 for d = lane, lane + 32, ...
template <class S>
class Own {
  using T = typename S::T;

 public:
  __device__ void load(const AttendArgs& a, int32_t r, int32_t kv_head) {
    const int64_t column = static_cast<int64_t>(kv_head) * S::kDim;
    const auto* k = static_cast<const T*>(a.rotation.k) + r * a.rotation.k_stride + column;
    const auto* v = static_cast<const T*>(a.rotation.v) + r * a.rotation.v_stride + column;
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      const int32_t d = threadIdx.x % 32 + 32 * i;
      rotated<S>(a, r, k, d, k_[i][0], k_[i][1]);
      v_[i][0] = __ldcg(v + d);
      v_[i][1] = __ldcg(v + d + S::kDim / 2);
    }
  }
  // Into the cache, at `at`.
  __device__ void store(const AttendArgs& a, int64_t at) const {
    T* keys = static_cast<T*>(a.cache.k) + at;
    T* values = static_cast<T*>(a.cache.v) + at;
    put([&](int32_t d) { return d; }, keys, values);
  }
  // As key number `key` of a tile.
  __device__ void patch(T* keys, T* values, int32_t key) const {
    const auto place = [&](int32_t d) { return (d / 8 ^ (key & 7)) * 8 + d % 8; };
    put(place, keys + key * S::kDim, values + key * S::kDim);
  }

 private:
  static constexpr int kParts = S::kDim / 64;
  template <class Place>
  __device__ __forceinline__ void put(const Place& place, T* keys, T* values) const {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int32_t d = threadIdx.x % 32 + 32 * i + half * (S::kDim / 2);
        keys[place(d)] = k_[i][half];
        values[place(d)] = v_[i][half];
      }
    }
  }
  T k_[kParts][2], v_[kParts][2];
};

// Leaves q and k rotated behind, once nobody reads them any more: the heads of this pass, and with the first
// pass the key of the KV head.
template <class S>
__device__ void rotate_in_place(const AttendArgs& a, int32_t r, int32_t kv_head, bool with_key,
                                const Piece<S>& piece) {
  using T = typename S::T;
  T* keys = static_cast<T*>(a.rotation.k) + r * a.rotation.k_stride + static_cast<int64_t>(kv_head) * S::kDim;
  T* queries = static_cast<T*>(a.rotation.q) + r * a.rotation.q_stride;
  const int32_t heads = piece.num_heads + (with_key ? 1 : 0);
  for (int32_t i = threadIdx.x; i < heads * (S::kDim / 2); i += S::kThreads) {
    const int32_t h = i / (S::kDim / 2), d = i % (S::kDim / 2);
    T* head = h < piece.num_heads ? queries + static_cast<int64_t>(piece.heads[h]) * S::kDim : keys;
    T low, high;
    rotated<S>(a, r, head, d, low, high);
    head[d] = low;
    head[d + S::kDim / 2] = high;
  }
}

template <class S>
__device__ void load_queries(const AttendArgs& a, int32_t r, Piece<S>& piece) {
  using T = typename S::T;
  for (int32_t i = threadIdx.x; i < kHeads * (S::kDim / 2); i += S::kThreads) {
    const int32_t h = i / (S::kDim / 2), d = i % (S::kDim / 2);
    T low = from_float<T>(0), high = low;
    if (h < piece.num_heads) {
      const T* head =
          static_cast<const T*>(a.q) + r * a.q_stride + static_cast<int64_t>(piece.heads[h]) * S::kDim;
      if (a.rotation.cos_sin != nullptr) {
        rotated<S>(a, r, head, d, low, high);
      } else {
        low = __ldcg(head + d), high = __ldcg(head + d + S::kDim / 2);
      }
    }
    piece.q[h][d] = low;
    piece.q[h][d + S::kDim / 2] = high;
  }
  __syncthreads();
}

// An 8 x 8 matrix of 16 bits, a row of it in four lanes, transposed.
__device__ __forceinline__ uint32_t transpose(uint32_t m) {
  uint32_t out;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(m));
  return out;
}

// What a warp knows of the row so far. A lane holds heads 2 (lane % 4) and the next: of the softmax over the
// keys that it has seen, of the sums those of dimensions lane / 4, + 8, + 16, ...
template <class S>
class Running {
 public:
  __device__ void load_queries(const Piece<S>& piece) {
    const int32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < S::kDim / 8; ++i)
      q_[i] = *reinterpret_cast<const uint32_t*>(&piece.q[lane / 4][8 * i + lane % 4 * 2]);
  }
  // Takes in a tile whose first key is number `first` of the context.
  __device__ __forceinline__ void add(uint32_t keys, uint32_t values, int32_t first, const Share& share,
                                      float scale) {
    float scores[S::kKeys / 16][4] = {};
#pragma unroll
    for (int m = 0; m < S::kKeys / 16; ++m) {
#pragma unroll
      for (int i = 0; i < S::kDim / 16; ++i) {
        uint32_t k[4];
        load_matrices(matrix_at<S::kDim>(keys, 16 * m, 2 * i, true), k);
        mma<T>(scores[m], k[0], k[1], k[2], k[3], q_[2 * i], q_[2 * i + 1]);
      }
      const bool whole = first >= share.begin && first + S::kKeys <= share.end;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (whole) {
          scores[m][i] *= scale;
          continue;
        }
        const int32_t key = first + 16 * m + static_cast<int32_t>(threadIdx.x % 32 / 4) + i / 2 * 8;
        scores[m][i] = key >= share.begin && key < share.end ? scores[m][i] * scale : kNone;
      }
    }
    weigh(scores);
#pragma unroll
    for (int m = 0; m < S::kKeys / 16; ++m) {
      const Halves<T> upper = split_pair<T>(scores[m][0], scores[m][1]);
      const Halves<T> lower = split_pair<T>(scores[m][2], scores[m][3]);
      const uint32_t high[2] = {transpose(upper.high), transpose(lower.high)};
      const uint32_t low[2] = {transpose(upper.low), transpose(lower.low)};
#pragma unroll
      for (int i = 0; i < S::kDim / 16; ++i) {
        uint32_t v[4];
        load_transposed(matrix_at<S::kDim>(values, 16 * m, 2 * i, false), v);
        mma<T>(sums_[i], v[0], v[1], v[2], v[3], high[0], high[1]);
        mma<T>(sums_[i], v[0], v[1], v[2], v[3], low[0], low[1]);
      }
    }
  }
  // Leaves the result of this warp: the sums at `sums`, [kHeads, kPitch].
  __device__ void put(float* sums, Piece<S>& piece) {
    const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, head = lane % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int offset = 4; offset < 32; offset *= 2) total_[h] += __shfl_xor_sync(~0u, total_[h], offset);
      if (lane < 4) {
        piece.largest[warp][head + h] = largest_[h];
        piece.total[warp][head + h] = total_[h];
      }
#pragma unroll
      for (int i = 0; i < S::kDim / 16; ++i) {
        float* to = sums + (head + h) * S::kPitch + 16 * i + lane / 4;
        to[0] = sums_[i][h];
        to[8] = sums_[i][h + 2];
      }
    }
  }

 private:
  using T = typename S::T;
  // Turns scores, in units of log 2, into weights.
  __device__ __forceinline__ void weigh(float (&scores)[S::kKeys / 16][4]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float largest = largest_[h];
#pragma unroll
      for (int m = 0; m < S::kKeys / 16; ++m) largest = fmaxf(largest, fmaxf(scores[m][h], scores[m][h + 2]));
#pragma unroll
      for (int offset = 4; offset < 32; offset *= 2)
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, offset));
      const float shrink = largest_[h] == kNone ? 0 : exp2_of(largest_[h] - largest);
      largest_[h] = largest;
      total_[h] *= shrink;
#pragma unroll
      for (int i = 0; i < S::kDim / 16; ++i) {
        sums_[i][h] *= shrink;
        sums_[i][h + 2] *= shrink;
      }
#pragma unroll
      for (int m = 0; m < S::kKeys / 16; ++m) {
#pragma unroll
        for (int i = h; i < 4; i += 2) {
          scores[m][i] = scores[m][i] == kNone ? 0 : exp2_of(scores[m][i] - largest);
          total_[h] += scores[m][i];
        }
      }
    }
  }

  uint32_t q_[S::kDim / 8];
  float largest_[2] = {kNone, kNone}, total_[2] = {0, 0};
  float sums_[S::kDim / 16][4] = {};
};

// The tiles of a warp, kWarps apart, through its ring.
template <class S>
class Tiles {
 public:
  __device__ Tiles(const AttendArgs& a, const Split& split, const int32_t* table, int32_t kv_head,
                   const Share& share, unsigned char* ring)
      : a_(a), split_(split), table_(table), kv_head_(kv_head), share_(share), ring_(ring) {}

  // Puts the first tiles under way.
  __device__ void start() {
    next_ = tile_ = first();
#pragma unroll 1
    for (int i = 0; i < S::kStages; ++i) copy(i);
  }
  __device__ bool has_own() const {
    return share_.own >= share_.begin && share_.own < share_.end &&
           (share_.own - first()) / S::kKeys % S::kWarps == 0 && share_.own >= first();
  }
  __device__ void attend(const Own<S>& own, float scale, Running<S>& running) {
    int stage = 0;
    for (; tile_ < share_.end; tile_ += S::kWarps * S::kKeys) {
      unsigned char* at = ring_ + stage * 2 * S::kTileBytes;
      wait_copies<S::kStages - 1>();
      if (share_.own >= tile_ && share_.own < tile_ + S::kKeys && share_.own < share_.end) {
        __syncwarp();  // of the zeros that the copies of other lanes put there
        own.patch(reinterpret_cast<T*>(at), reinterpret_cast<T*>(at + S::kTileBytes), share_.own - tile_);
      }
      __syncwarp();
      const auto keys = static_cast<uint32_t>(__cvta_generic_to_shared(at));
      running.add(keys, keys + S::kTileBytes, tile_, share_, scale);
      __syncwarp();
      copy(stage);
      stage = (stage + 1) % S::kStages;
    }
    wait_copies<0>();
    __syncwarp();
  }

 private:
  using T = typename S::T;
  __device__ int32_t first() const {
    return share_.begin / S::kKeys * S::kKeys + static_cast<int32_t>(threadIdx.x / 32) * S::kKeys;
  }
  __device__ __forceinline__ void copy(int stage) {
    if (next_ < share_.end) {
      const int32_t lane = threadIdx.x % 32, mine = next_ + lane % S::kKeys, shift = split_.block_shift;
      const int32_t block = mine >= share_.begin && mine < share_.end ? __ldg(table_ + (mine >> shift)) : 0;
      const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(ring_ + stage * 2 * S::kTileBytes));
#pragma unroll
      for (int i = 0; i < S::kTileBytes / 512; ++i) {
        const int32_t key = (i * 32 + lane) / S::kChunks, chunk = lane % S::kChunks, t = next_ + key;
        const bool present = t >= share_.begin && t < share_.end && t != share_.own;
        const int64_t head =
            static_cast<int64_t>(__shfl_sync(~0u, block, key)) * a_.cache.num_kv_heads + kv_head_;
        const int64_t from = present ? ((head << shift) + (t & ((1 << shift) - 1))) * S::kDim + chunk * 8 : 0;
        const auto to = at + static_cast<uint32_t>(key * S::kDim * 2 + (chunk ^ (key & 7)) * 16);
        copy_sixteen(to, static_cast<const T*>(a_.cache.k) + from, present);
        copy_sixteen(to + S::kTileBytes, static_cast<const T*>(a_.cache.v) + from, present);
      }
      next_ += S::kWarps * S::kKeys;
    }
    commit_copies();
  }

  const AttendArgs& a_;
  const Split& split_;
  const int32_t* table_;
  int32_t kv_head_;
  const Share& share_;
  unsigned char* ring_;
  int32_t next_ = 0, tile_ = 0;
};

// Adds up the warps and writes the piece, or where it is the only one the result.
template <class S>
__device__ void write_piece(const AttendArgs& a, const Split& split, int32_t r, bool alone,
                            const Piece<S>& piece, const unsigned char* rings) {
  constexpr int kDim = S::kDim;
  for (int32_t i = threadIdx.x; i < piece.num_heads * kDim; i += S::kThreads) {
    const int32_t index = i / kDim, h = piece.heads[index], d = i % kDim;
    float largest = kNone, total = 0, sum = 0;
#pragma unroll
    for (int w = 0; w < S::kWarps; ++w) largest = fmaxf(largest, piece.largest[w][index]);
#pragma unroll
    for (int w = 0; w < S::kWarps; ++w) {
      const float weight = piece.largest[w][index] == kNone ? 0 : exp2_of(piece.largest[w][index] - largest);
      const float* sums = reinterpret_cast<const float*>(rings + w * S::kRing);
      total = fmaf(weight, piece.total[w][index], total);
      sum = fmaf(weight, sums[index * S::kPitch + d], sum);
    }
    if (alone) {
      static_cast<typename S::T*>(a.out)[r * a.out_stride + static_cast<int64_t>(h) * kDim + d] =
          from_float<typename S::T>(total > 0 ? sum / total : 0.0f);
      continue;
    }
    float* at = split.partial +
                ((static_cast<int64_t>(r) * split.splits + blockIdx.y) * a.num_q_heads + h) * (kDim + 2);
    at[2 + d] = sum;
    if (d == 0) at[0] = largest, at[1] = total;
  }
}

// The last piece of a row and KV head to end adds all of them up, in the order of the context.
template <class S>
__device__ void merge(const AttendArgs& a, const Split& split, int32_t r, int32_t pieces, Piece<S>& piece) {
  constexpr int kDim = S::kDim, kSize = kDim + 2;
  const int64_t step = static_cast<int64_t>(a.num_q_heads) * kSize;
  const float* row = split.partial + static_cast<int64_t>(r) * split.splits * step;
  const int32_t lane = threadIdx.x % 32;
  for (int32_t h = threadIdx.x / 32; h < piece.num_heads; h += S::kWarps) {  // a lane a piece
    const float* at = row + lane * step + static_cast<int64_t>(piece.heads[h]) * kSize;
    const float own = lane < pieces ? __ldcg(at) : kNone, total = lane < pieces ? __ldcg(at + 1) : 0;
    const float largest = warp_max(own);
    const float weight = own == kNone ? 0 : exp2_of(own - largest);
    const float all = warp_sum(weight * total);
    piece.shares[h][lane] = all > 0 ? weight / all : 0;
  }
  __syncthreads();
  for (int32_t i = threadIdx.x; i < piece.num_heads * kDim; i += S::kThreads) {
    const int32_t index = i / kDim, d = i % kDim;
    const int64_t h = piece.heads[index];
    float sum = 0;
#pragma unroll 8
    for (int32_t s = 0; s < pieces; ++s)
      sum = fmaf(piece.shares[index][s], __ldcg(row + s * step + h * kSize + 2 + d), sum);
    static_cast<typename S::T*>(a.out)[r * a.out_stride + h * kDim + d] = from_float<typename S::T>(sum);
  }
}

// Whether this block is the last of its row and KV head to come here.
template <class S>
__device__ bool is_last(const Split& split, int32_t r, int32_t kv_head, int32_t pieces, Piece<S>& piece) {
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
template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks) attend_split_kernel(AttendArgs a, Split split) {
  extern __shared__ __align__(128) unsigned char rings[];
  __shared__ __align__(16) Piece<S> piece;
  const int32_t r = blockIdx.x, kv_head = blockIdx.z, warp = threadIdx.x / 32;
  let_next_start();
  if (threadIdx.x == 0) piece.pass = -1;
  __syncthreads();
  if (!a.rotation.settled) wait_for_inputs();
  if (a.prompts && is_prompt(a.batch, a.batch.seq_of_token[r])) return;
  const int32_t position = a.batch.positions[r];
  const Share share = share_of(a, split, position);
  const int32_t* table =
      a.batch.block_table + static_cast<int64_t>(a.batch.seq_of_token[r]) * a.batch.max_blocks_per_seq;
  Tiles<S> tiles(a, split, table, kv_head, share, rings + warp * S::kRing);
  if (static_cast<int32_t>(blockIdx.y) < share.pieces) tiles.start();
  find_heads(a, kv_head, 0, piece);
  if (a.rotation.settled) wait_for_inputs();
  if (static_cast<int32_t>(blockIdx.y) >= share.pieces) return;
  Own<S> own;
  if (tiles.has_own()) own.load(a, r, kv_head);
  const float scale = a.scale * 1.44269504f;  // 1 / log 2
  for (int32_t pass = 0; find_heads(a, kv_head, pass, piece); ++pass) {
    if (pass > 0) tiles.start();
    load_queries(a, r, piece);
    // Not before those loads, which the compiler may not move across a store.
    if (pass == 0 && tiles.has_own()) own.store(a, cache_row(a, table, position, kv_head));
    Running<S> running;
    running.load_queries(piece);
    tiles.attend(own, scale, running);
    running.put(reinterpret_cast<float*>(rings + warp * S::kRing), piece);
    __syncthreads();
    write_piece(a, split, r, share.pieces == 1, piece, rings);
    __syncthreads();
  }
  if (share.pieces > 1) {
    if (!is_last(split, r, kv_head, share.pieces, piece)) return;
    for (int32_t pass = 0; find_heads(a, kv_head, pass, piece); ++pass)
      merge(a, split, r, share.pieces, piece);
  }
  if (share.own < 0 || !a.rotation.keep) return;
  for (int32_t pass = 0; find_heads(a, kv_head, pass, piece); ++pass)
    rotate_in_place(a, r, kv_head, pass == 0, piece);
}

// Enough pieces to fill the device, all within the scratch memory.
Split plan_split(const Queue& queue, const AttendArgs& a, const AttentionScratch& scratch) {
  const int32_t longest = a.batch.max_blocks_per_seq * a.cache.block_size;
  const int32_t rows = a.batch.num_tokens, blocks = rows * a.cache.num_kv_heads;
  int64_t splits = scratch.may_split ? ceil_div(queue.num_sms, std::max(blocks, 1)) : 1;
  splits = std::min<int64_t>({splits, ceil_div(longest, kMinKeys), kMaxSplits});
  const int64_t floats = int64_t{rows} * a.num_q_heads * (a.cache.head_dim + 2);
  splits = std::min<int64_t>(splits, static_cast<int64_t>(scratch.floats) / std::max<int64_t>(floats, 1));
  if (blocks > scratch.num_counters) splits = 1;
  int32_t shift = 0;
  while (1 << shift < a.cache.block_size) ++shift;
  return {scratch.partial, scratch.counters, static_cast<int32_t>(std::max<int64_t>(splits, 1)), shift};
}

template <class S>
void launch_shape(const Queue& queue, const AttendArgs& a, const Split& split) {
  const dim3 grid(static_cast<unsigned>(a.batch.num_tokens), static_cast<unsigned>(split.splits),
                  static_cast<unsigned>(a.cache.num_kv_heads));
  prefer_shared(attend_split_kernel<S>, S::kWarps * S::kRing, "attention");
  launch(queue, "attention", attend_split_kernel<S>, grid, S::kThreads, S::kWarps * S::kRing, a, split);
}

template <class T, int kDim>
void launch_dim(const Queue& queue, const AttendArgs& a, const AttentionScratch& scratch) {
  const Split split = plan_split(queue, a, scratch);
  const int32_t blocks = a.batch.num_tokens * a.cache.num_kv_heads * split.splits;
  using Many = Shape<T, kDim, kManyWarps>;
  // Where every block has a multiprocessor to itself. The number of warps changes the order of summation.
  if (scratch.may_split && blocks <= queue.num_sms &&
      queue.shared_bytes >= kManyWarps * Many::kRing + static_cast<int32_t>(sizeof(Piece<Many>)))
    return launch_shape<Many>(queue, a, split);
  launch_shape<Shape<T, kDim, kFewWarps>>(queue, a, split);
}

template <class T>
void launch_type(const Queue& queue, const AttendArgs& a, const AttentionScratch& scratch) {
  a.cache.head_dim == 64 ? launch_dim<T, 64>(queue, a, scratch) : launch_dim<T, 128>(queue, a, scratch);
}

}  // namespace

void attend_split(const Queue& queue, const AttendArgs& a, DType dtype, const AttentionScratch& scratch) {
  dtype == DType::kF16 ? launch_type<__half>(queue, a, scratch)
                       : launch_type<__nv_bfloat16>(queue, a, scratch);
}

}  // namespace whippet::cuda
