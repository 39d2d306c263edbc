// Products of few rows of fp16 or bf16 on the tensor cores (mma m16n8k16), with the weights as the operand of
// 16 rows, so that batch 1 to 8 costs the same and 32 little more. Every lane reads 16 neighbouring bytes of
// a weight row and of a row of x: the inner index is permuted the same way in both operands, so neither needs
// a layout of its own.
//   narrow  the warps of a block share its output tiles and split the inner index between them
//   wide    a warp has output tiles of its own
// Weights go to shared memory by asynchronous copies, to a place that the lane that copies alone reads again:
// no barrier guards them, and a block has up to its whole share of the weight under way before it waits for
// its inputs, while the kernels ahead of it run. Fused where a caller asks: RMSNorm before (its factor is
// applied to the sums), and after the product the residual sum, or silu(gate) * up with a tile of eight gate
// rows and their eight up rows. Bytes: the weight once.
#include <algorithm>

#include "backend/cuda/copy.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/tile.h"
#include "backend/cuda/weight.cuh"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kGroups = 8;  // of copies under way in a warp
constexpr int kPad = 32;    // between staged rows: the eight that a warp reads at once lie in different banks

// A tile has 16 rows of the weight, or 8 where there are few (kHalf).
template <class T_, int kTiles_, bool kWide_, bool kHalf_>
struct Shape {
  using T = T_;
  static constexpr int kTiles = kTiles_;  // of 8 rows of x
  static constexpr bool kWide = kWide_;
  static constexpr bool kHalf = kHalf_;
  static constexpr int kHeight = kHalf ? 8 : 16;
  static constexpr int kUnit = kHalf ? 512 : 1024;     // bytes of a warp's step of 32 inputs
  static constexpr int kChunk = kTiles == 1 ? 8 : 4;   // steps whose inputs are in registers
  static constexpr int kBlocks = kTiles == 1 ? 3 : 1;  // on a multiprocessor, by registers
};

// Where things lie in a block's shared memory.
struct Layout {
  int32_t staged, sums, squares, norm, size;
};
template <class S>
__host__ __device__ Layout layout_of(const TileArgs& a, int32_t ring_bytes) {
  Layout at;
  at.staged = ring_bytes;
  at.sums = at.staged + (a.staged ? a.rows * (a.in + kPad) * 2 : 0);
  at.squares = at.sums + (S::kWide ? 0 : a.round_tiles * kWarps * a.rows * S::kHeight * 4);
  at.norm = at.squares + (a.norm != nullptr ? a.rows * kWarps * 4 : 0);
  at.size = at.norm + (a.norm != nullptr && !a.staged ? a.in * 4 : 0);
  return at;
}

extern __shared__ __align__(128) unsigned char dynamic_shared[];

// A warp's share: tiles first, first + step, ... < end, and of each the steps [begin, begin + steps).
struct Work {
  int32_t first, end, stride, begin, steps;
  __device__ int32_t units() const { return first < end ? (end - first + stride - 1) / stride * steps : 0; }
};
template <class S>
__device__ Work work_of(const TileArgs& a) {
  const int32_t warp = threadIdx.x / 32, block = blockIdx.x, blocks = gridDim.x, steps = a.in / 32;
  if (S::kWide) return {block * kWarps + warp, a.tiles, blocks * kWarps, 0, steps};
  const int32_t begin = steps * warp / kWarps, end = steps * (warp + 1) / kWarps;
  const auto tile = [&](int32_t b) { return static_cast<int32_t>(int64_t{a.tiles} * b / blocks); };
  return {tile(block), tile(block + 1), 1, begin, end - begin};
}

// The two weight rows of this lane in a tile: the upper and the lower eight of its rows.
struct LaneRows {
  int32_t upper, lower;
};
template <class S>
__device__ __forceinline__ LaneRows rows_of(const TileArgs& a, int32_t tile, int32_t index) {
  if (S::kHalf) return {tile * 8 + index, 0};
  if (a.pair > 0) return {tile * 8 + index, tile * 8 + index + a.pair};
  return {tile * 16 + index, tile * 16 + index + 8};
}

// The copies of a warp, in the order in which they are used, a ring of kGroups groups.
template <class S>
class Weights {
 public:
  __device__ Weights(const TileArgs& a, const Work& work) : a_(a), work_(work), left_(work.units()) {
    const int32_t warp = threadIdx.x / 32;
    const bool fits = a.group_units == 0;
    group_ = fits ? (left_ + kGroups - 1) / kGroups : a.group_units;
    slots_ = fits ? left_ : kGroups * group_;
    const int32_t before = fits ? work.begin * (work.end - work.first) : warp * slots_;
    base_ = static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_shared)) + before * S::kUnit +
            threadIdx.x % 32 * 16;
    tile_ = work.first;
    set_rows();
  }
  // Puts the first groups under way.
  __device__ void start() {
#pragma unroll 1
    for (int g = 0; g < kGroups; ++g) copy_group();
  }
  // The next step's weights of this lane.
  __device__ __forceinline__ void take(uint4& upper, uint4& lower) {
    if (used_ == 0) wait_copies<kGroups - 1>();
    upper = load_shared(base_ + read_ * S::kUnit);
    if constexpr (S::kHalf) {
      lower = make_uint4(0, 0, 0, 0);
    } else {
      lower = load_shared(base_ + read_ * S::kUnit + 512);
    }
    if (++read_ == slots_) read_ = 0;
    if (++used_ == group_) used_ = 0, copy_group();
  }

 private:
  __device__ __forceinline__ void set_rows() {
    const int32_t lane = threadIdx.x % 32, last = a_.out - 1;
    const LaneRows rows = rows_of<S>(a_, tile_, lane / 4);
    const auto* weights = static_cast<const typename S::T*>(a_.weights);
    const int64_t column = static_cast<int64_t>(work_.begin) * 32 + lane % 4 * 8;
    upper_ = weights + min(rows.upper, last) * a_.weight_stride + column;  // rows beyond the last repeat it
    if (!S::kHalf) lower_ = weights + min(rows.lower, last) * a_.weight_stride + column;
  }
  __device__ void copy_group() {
    for (int32_t i = 0; i < group_ && left_ > 0; ++i, --left_) {
      copy_sixteen(base_ + write_ * S::kUnit, upper_ + step_ * 32);
      if (!S::kHalf) copy_sixteen(base_ + write_ * S::kUnit + 512, lower_ + step_ * 32);
      if (++write_ == slots_) write_ = 0;
      if (++step_ < work_.steps) continue;
      step_ = 0;
      tile_ += work_.stride;
      set_rows();
    }
    commit_copies();
  }

  const TileArgs& a_;
  const Work& work_;
  const typename S::T *upper_, *lower_;
  uint32_t base_;
  int32_t left_, group_, slots_, tile_, step_ = 0, write_ = 0, read_ = 0, used_ = 0;
};

// Eight neighbours of x times the norm's weights; returns the sum of the squares of x.
template <class T>
__device__ __forceinline__ float scale_inputs(uint4& raw, const float* norm) {
  T* values = reinterpret_cast<T*>(&raw);
  const float4 a = *reinterpret_cast<const float4*>(norm), b = *reinterpret_cast<const float4*>(norm + 4);
  const float weights[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
  float squares = 0;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float value = to_float(values[j]);
    squares = fmaf(value, value, squares);
    values[j] = from_float<T>(value * weights[j]);
  }
  return squares;
}

constexpr int kStagedAtOnce = 4;  // loads of a thread

// Copies x to shared memory, times the norm's weights where there is a norm. parts: warps that share a row.
template <class T>
__device__ void stage_inputs(const TileArgs& a, int32_t parts, T* staged, float* squares_of) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = warp % parts;
  for (int32_t r = warp / parts; r < a.rows; r += kWarps / parts) {
    const uint4* from = reinterpret_cast<const uint4*>(static_cast<const T*>(a.x) + r * a.x_stride);
    uint4* to = reinterpret_cast<uint4*>(staged + r * (a.in + kPad));
    float squares = 0;
    for (int32_t base = part * 32 + lane; base < a.in / 8; base += kStagedAtOnce * 32 * parts) {
      uint4 raw[kStagedAtOnce];
#pragma unroll
      for (int k = 0; k < kStagedAtOnce; ++k)
        if (base + k * 32 * parts < a.in / 8) raw[k] = __ldcg(from + base + k * 32 * parts);
#pragma unroll
      for (int k = 0; k < kStagedAtOnce; ++k) {
        const int32_t i = base + k * 32 * parts;
        if (i >= a.in / 8) break;
        if (a.norm != nullptr) squares += scale_inputs<T>(raw[k], a.norm + 8 * i);
        to[i] = raw[k];
      }
    }
    if (a.norm == nullptr) continue;
    squares = warp_sum(squares);
    if (lane == 0) squares_of[r * kWarps + part] = squares;
  }
  __syncthreads();
}

// Inputs of the steps [first, first + kChunk) of a warp, 0 beyond its last.
template <class S>
__device__ __forceinline__ void load_inputs(const TileArgs& a, const Work& work, int32_t first,
                                            const typename S::T* staged, uint4 (&x)[S::kChunk][S::kTiles]) {
  using T = typename S::T;
  const int32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int s = 0; s < S::kChunk; ++s) {
    const int32_t column = (work.begin + first + s) * 32 + lane % 4 * 8;
#pragma unroll
    for (int t = 0; t < S::kTiles; ++t) {
      const int32_t row = t * 8 + lane / 4;
      x[s][t] = make_uint4(0, 0, 0, 0);
      if (row >= a.rows || first + s >= work.steps) continue;
      x[s][t] = a.staged ? *reinterpret_cast<const uint4*>(staged + row * (a.in + kPad) + column)
                         : __ldcg(reinterpret_cast<const uint4*>(static_cast<const T*>(a.x) +
                                                                 row * a.x_stride + column));
    }
  }
}

// The norm's weights of a warp's steps, to where it alone reads them.
__device__ __forceinline__ void copy_norm(const TileArgs& a, const Work& work, const float* to) {
  const int32_t begin = work.begin * 32;
  for (int32_t i = threadIdx.x % 32; i < work.steps * 8; i += 32)
    copy_sixteen(static_cast<uint32_t>(__cvta_generic_to_shared(to + begin + 4 * i)), a.norm + begin + 4 * i);
  commit_copies();
}

// Scales the inputs that a warp keeps, and leaves its part of the sums of squares.
template <class S>
__device__ __forceinline__ void norm_inputs(const TileArgs& a, const Work& work, const float* norm,
                                            float* squares_of, uint4 (&x)[S::kChunk][S::kTiles]) {
  const int32_t lane = threadIdx.x % 32;
  wait_copies<kGroups>();
  __syncwarp();
#pragma unroll
  for (int t = 0; t < S::kTiles; ++t) {
    float squares = 0;
#pragma unroll
    for (int s = 0; s < S::kChunk; ++s)
      if (s < work.steps)
        squares += scale_inputs<typename S::T>(x[s][t], norm + (work.begin + s) * 32 + lane % 4 * 8);
    squares += __shfl_xor_sync(~0u, squares, 1);
    squares += __shfl_xor_sync(~0u, squares, 2);
    const int32_t row = t * 8 + lane / 4;
    if (lane % 4 == 0 && row < a.rows) squares_of[row * kWarps + threadIdx.x / 32] = squares;
  }
}

// The factor of RMSNorm for a row of x.
__device__ __forceinline__ float norm_factor(const TileArgs& a, const float* squares_of, int32_t parts,
                                             int32_t r) {
  if (a.norm == nullptr) return 1;
  float sum = 0;
  for (int32_t part = 0; part < parts; ++part) sum += squares_of[r * kWarps + part];
  return rsqrtf(sum / static_cast<float>(a.in) + a.eps);
}

// Number i of a block's pairs of outputs: a row of x, a tile of the round, and a row of the tile's upper
// half.
struct Output {
  int32_t row, tile, index;
  __device__ Output(const TileArgs& a, int32_t i)
      : row(a.rows == 1 ? 0 : i / 8 % a.rows), tile(a.rows == 1 ? i / 8 : i / 8 / a.rows), index(i % 8) {}
};

// What the residual holds before the sum; 0 where there is none.
template <class T>
__device__ __forceinline__ float residual_at(const TileArgs& a, int32_t r, int32_t o) {
  if (a.residual == nullptr || o >= a.out) return 0;
  return to_float(__ldcg(static_cast<const T*>(a.residual) + r * a.residual_stride + o));
}

// Writes what came of one output for one row of x; returns it rounded.
template <class T>
__device__ __forceinline__ float emit(const TileArgs& a, int32_t o, int32_t r, float sum, float factor,
                                      float residual) {
  const float value = sum * factor + (a.bias != nullptr ? __ldg(a.bias + o) : 0.0f);
  if (a.y_is_float) {
    static_cast<float*>(a.y)[r * a.y_stride + o] = value;
    return value;
  }
  const T rounded = from_float<T>(value);
  if (a.y != nullptr) static_cast<T*>(a.y)[r * a.y_stride + o] = rounded;
  if (a.residual != nullptr)
    static_cast<T*>(a.residual)[r * a.residual_stride + o] = from_float<T>(residual + to_float(rounded));
  return to_float(rounded);
}

template <class S>
__device__ __forceinline__ void emit_both(const TileArgs& a, const LaneRows& rows, int32_t r, float upper,
                                          float lower, float factor, const float (&residual)[2]) {
  using T = typename S::T;
  if (rows.upper >= a.out) return;
  upper = emit<T>(a, rows.upper, r, upper, factor, residual[0]);
  if (S::kHalf || rows.lower >= a.out) return;
  lower = emit<T>(a, rows.lower, r, lower, factor, residual[1]);
  if (a.pair > 0)
    static_cast<T*>(a.gated)[r * a.gated_stride + rows.upper] =
        from_float<T>(__fdividef(upper, 1 + __expf(-upper)) * lower);
}

// Residuals of the output that this thread writes first, asked for before the product.
template <class S>
__device__ __forceinline__ void load_residuals(const TileArgs& a, const LaneRows& rows, int32_t r,
                                               float (&residual)[2]) {
  residual[0] = residual_at<typename S::T>(a, r, rows.upper);
  residual[1] = S::kHalf ? 0 : residual_at<typename S::T>(a, r, rows.lower);
}

// Adds the warps' shares of `count` tiles from `tile` on and writes their outputs. has_early: the residuals
// of this thread's first output are known.
template <class S>
__device__ void finish_tiles(const TileArgs& a, int32_t tile, int32_t count, const float* sums,
                             const float* squares_of, int32_t parts, bool has_early, float early_upper,
                             float early_lower) {
  for (int32_t i = threadIdx.x; i < count * a.rows * 8; i += kThreads) {
    const Output output(a, i);
    const int32_t index = output.index, r = output.row, t = output.tile;
    const LaneRows rows = rows_of<S>(a, tile + t, index);
    float upper = 0, lower = 0;
#pragma unroll
    for (int s = 0; s < kWarps; ++s) {
      const float* from = sums + ((t * kWarps + s) * a.rows + r) * S::kHeight + index;
      upper += from[0];
      if (!S::kHalf) lower += from[8];
    }
    float residual[2];
    if (has_early && i == static_cast<int32_t>(threadIdx.x)) {
      residual[0] = early_upper, residual[1] = early_lower;
    } else {
      load_residuals<S>(a, rows, r, residual);
    }
    emit_both<S>(a, rows, r, upper, lower, norm_factor(a, squares_of, parts, r), residual);
  }
}

// The normed rows themselves, which the sequence of ops has as an output too. One block writes them.
template <class S>
__device__ void write_normed(const TileArgs& a, const float* squares_of, int32_t parts) {
  using T = typename S::T;
  for (int32_t r = 0; r < a.rows; ++r) {
    const float factor = norm_factor(a, squares_of, parts, r);
    for (int32_t i = threadIdx.x; i < a.in; i += kThreads)
      static_cast<T*>(a.normed)[r * a.normed_stride + i] = from_float<T>(
          to_float(__ldcg(static_cast<const T*>(a.x) + r * a.x_stride + i)) * factor * a.norm[i]);
  }
}

// A warp's sums of a tile: [row of x][row of the weight].
template <class S>
__device__ __forceinline__ void put_sums(const TileArgs& a, const float (&sums)[S::kTiles][4], float* to) {
  const int32_t lane = threadIdx.x % 32, row = lane / 4;
#pragma unroll
  for (int t = 0; t < S::kTiles; ++t) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int32_t r = t * 8 + lane % 4 * 2 + j;
      if (r >= a.rows) continue;
      to[r * S::kHeight + row] = sums[t][j];
      if (!S::kHalf) to[r * S::kHeight + row + 8] = sums[t][j + 2];
    }
  }
}

// A warp's tile without its neighbours.
template <class S>
__device__ __forceinline__ void emit_tile(const TileArgs& a, int32_t tile, const float (&sums)[S::kTiles][4],
                                          const float* squares_of, int32_t parts) {
  const int32_t lane = threadIdx.x % 32;
  const LaneRows rows = rows_of<S>(a, tile, lane / 4);
#pragma unroll
  for (int t = 0; t < S::kTiles; ++t) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int32_t r = t * 8 + lane % 4 * 2 + j;
      if (r >= a.rows) continue;
      float residual[2];
      load_residuals<S>(a, rows, r, residual);
      emit_both<S>(a, rows, r, sums[t][j], sums[t][j + 2], norm_factor(a, squares_of, parts, r), residual);
    }
  }
}

template <class S>
__device__ __forceinline__ void multiply(const TileArgs& a, const Work& work, bool kept,
                                         const typename S::T* staged, uint4 (&x)[S::kChunk][S::kTiles],
                                         Weights<S>& weights, float (&sums)[S::kTiles][4]) {
  using T = typename S::T;
  float others[S::kTiles][4] = {};  // every second product, so that two are under way
#pragma unroll 1
  for (int32_t first = 0; first < work.steps; first += S::kChunk) {
    if (!kept) load_inputs<S>(a, work, first, staged, x);
#pragma unroll
    for (int s = 0; s < S::kChunk; ++s) {
      if (first + s >= work.steps) break;
      uint4 upper, lower;
      weights.take(upper, lower);
#pragma unroll
      for (int t = 0; t < S::kTiles; ++t) {
        mma<T>(sums[t], upper.x, lower.x, upper.y, lower.y, x[s][t].x, x[s][t].y);
        mma<T>(others[t], upper.z, lower.z, upper.w, lower.w, x[s][t].z, x[s][t].w);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < S::kTiles; ++t) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[t][i] += others[t][i];
  }
}

template <class S>
__global__ void __launch_bounds__(kThreads, S::kBlocks) tile_kernel(TileArgs a, int32_t ring_bytes) {
  using T = typename S::T;
  const Layout at = layout_of<S>(a, ring_bytes);
  T* staged = reinterpret_cast<T*>(dynamic_shared + at.staged);
  float* sums_of = reinterpret_cast<float*>(dynamic_shared + at.sums);
  float* squares_of = reinterpret_cast<float*>(dynamic_shared + at.squares);
  const Work work = work_of<S>(a);
  Weights<S> weights(a, work);
  float* norm = reinterpret_cast<float*>(dynamic_shared + at.norm);
  if (a.norm != nullptr && !a.staged) copy_norm(a, work, norm);
  weights.start();
  let_next_start();  // what it does before its own wait reads nothing that changes
  wait_for_inputs();

  int32_t parts = kWarps;
  uint4 x[S::kChunk][S::kTiles];
  float early[2] = {0, 0};
  if (!S::kWide) {
    const Output first(a, static_cast<int32_t>(threadIdx.x));
    load_residuals<S>(a, rows_of<S>(a, min(work.first + first.tile, a.tiles - 1), first.index), first.row,
                      early);
  }
  const bool kept = !a.staged && work.steps <= S::kChunk;
  if (a.staged) {
    parts = a.rows == 1 ? 8 : a.rows == 2 ? 4 : a.rows <= 4 ? 2 : 1;
    stage_inputs<T>(a, parts, staged, squares_of);
  } else if (kept) {
    load_inputs<S>(a, work, 0, staged, x);
    if (a.norm != nullptr) norm_inputs<S>(a, work, norm, squares_of, x);
  }
  if constexpr (S::kWide) {
    for (int32_t tile = work.first; tile < work.end; tile += work.stride) {
      float sums[S::kTiles][4] = {};
      multiply<S>(a, work, kept, staged, x, weights, sums);
      emit_tile<S>(a, tile, sums, squares_of, parts);
    }
  } else {
    const int32_t warp = threadIdx.x / 32;
    for (int32_t first = work.first; first < work.end; first += a.round_tiles) {
      const int32_t count = min(a.round_tiles, work.end - first);
      for (int32_t t = 0; t < count; ++t) {
        float sums[S::kTiles][4] = {};
        multiply<S>(a, work, kept, staged, x, weights, sums);
        put_sums<S>(a, sums, sums_of + (t * kWarps + warp) * a.rows * S::kHeight);
      }
      __syncthreads();
      finish_tiles<S>(a, first, count, sums_of, squares_of, parts, first == work.first, early[0], early[1]);
      if (first + count < work.end) __syncthreads();
    }
  }
  if (a.normed != nullptr && blockIdx.x == gridDim.x - 1) write_normed<S>(a, squares_of, parts);
}

constexpr int32_t kStagedShared = 80 << 10;  // most for x
constexpr int32_t kSumsShared = 24 << 10;    // and for the sums of a round, but for one tile's
// Most for weights under way. What a layer of Qwen2.5-0.5B needs of gate_up fits whole into the one and
// leaves room on a multiprocessor for the block of the next product.
constexpr int32_t kFullRing = 144 << 10;
constexpr int32_t kHalfRing = 64 << 10;
constexpr int32_t kWideRing = 128 << 10;

int32_t staged_bytes(int32_t rows, int32_t in) { return rows * (in + kPad) * 2; }
// So many outputs that every warp has tiles of its own.
bool is_wide(const Queue& queue, int32_t out) { return ceil_div(out, 16) >= 16 * queue.num_sms; }
// Of these few the registers hold all inputs of a warp.
bool can_keep(int32_t rows, int32_t in) { return ceil_div(in / 32, kWarps) <= (rows <= 8 ? 8 : 4); }
// Room for x beside the smallest rings and the largest sums.
bool can_stage(const Queue& queue, int32_t rows, int32_t in) {
  const int32_t room = std::min(kStagedShared, queue.shared_bytes - (66 << 10) - kSumsShared);
  return staged_bytes(rows, in) <= room;
}

template <class S>
void launch_shape(const Queue& queue, TileArgs args) {
  args.tiles = ceil_div(args.pair > 0 ? args.pair : args.out, S::kHalf || args.pair > 0 ? 8 : 16);
  const int32_t blocks = std::min(S::kWide ? ceil_div(args.tiles, kWarps) : args.tiles, queue.num_sms);
  const int32_t of_block = ceil_div(args.tiles, blocks);
  args.staged = (S::kWide || !can_keep(args.rows, args.in)) && can_stage(queue, args.rows, args.in);
  const int32_t tile_sums = kWarps * args.rows * S::kHeight * 4;
  args.round_tiles = std::min(of_block, std::max(1, kSumsShared / tile_sums));
  const int32_t room = queue.shared_bytes - layout_of<S>(args, 0).size;
  const int32_t most = std::min(room, S::kWide ? kWideRing : S::kHalf ? kHalfRing : kFullRing);
  const int64_t whole = int64_t{of_block} * (args.in / 32) * S::kUnit;
  int32_t ring = static_cast<int32_t>(std::min<int64_t>(whole, most));
  if (S::kWide || whole > most) {
    args.group_units = std::max(1, most / (kWarps * kGroups * S::kUnit));
    ring = kWarps * kGroups * args.group_units * S::kUnit;
  }
  const int32_t shared = layout_of<S>(args, ring).size;
  prefer_shared(tile_kernel<S>, shared, "linear");
  launch(queue, "linear", tile_kernel<S>, dim3(static_cast<unsigned>(blocks)), kThreads,
         static_cast<size_t>(shared), args, ring);
}

template <class T, int kTiles>
void launch_tiles(const Queue& queue, const TileArgs& args) {
  const int32_t tiles = ceil_div(args.out, 16);
  if (is_wide(queue, args.out)) return launch_shape<Shape<T, kTiles, true, false>>(queue, args);
  if (tiles >= queue.num_sms || args.pair > 0)
    return launch_shape<Shape<T, kTiles, false, false>>(queue, args);
  launch_shape<Shape<T, kTiles, false, true>>(queue, args);
}

bool on_sixteen(const void* data, int64_t stride) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride % 8 == 0;
}

}  // namespace

bool tiles_can_norm(const Queue& queue, ConstMat x, int32_t out) {
  return (!is_wide(queue, out) && can_keep(x.rows, x.cols)) || can_stage(queue, x.rows, x.cols);
}

bool tiles_fit(ConstMat x, const WeightView& w) {
  const bool same = (x.dtype == DType::kF16 && w.kind == LinearKind::kF16) ||
                    (x.dtype == DType::kBF16 && w.kind == LinearKind::kBF16);
  return same && x.rows <= kMaxTileRows && w.in % 32 == 0 && on_sixteen(x.data, x.stride);
}

void linear_tiles(const Queue& queue, DType dtype, const TileArgs& args) {
  if (args.kind == LinearKind::kInt8 || args.kind == LinearKind::kInt4)
    return linear_codes(queue, dtype, args);
  if (args.may_bulk && linear_bulk(queue, dtype, args)) return;
  const auto by_rows = [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if (args.rows <= 8) return launch_tiles<T, 1>(queue, args);
    launch_tiles<T, 4>(queue, args);
  };
  dtype == DType::kF16 ? by_rows(Tag<__half>()) : by_rows(Tag<__nv_bfloat16>());
}

TileArgs tile_args(ConstMat x, const WeightView& w, Mat out) {
  TileArgs args;
  args.x = x.data;
  args.x_stride = x.stride;
  args.rows = x.rows;
  args.in = x.cols;
  args.weights = w.codes;
  args.weight_stride = w.row_bytes / 2;
  args.kind = w.kind;
  args.cell_bytes = w.cell_bytes;
  args.cell_groups = w.group > 0 ? kCellColumns / w.group : 0;
  args.has_min = w.has_min;
  args.out = w.out;
  args.bias = w.bias;
  args.y = out.data;
  args.y_stride = out.stride;
  args.y_is_float = out.dtype == DType::kF32;
  return args;
}

}  // namespace whippet::cuda
