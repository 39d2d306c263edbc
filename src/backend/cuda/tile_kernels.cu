// Products of few rows of fp16 or bf16 on the tensor cores (mma m16n8k16), with the weights as the operand of
// 16 rows, so that batch 1 to 8 costs the same and 32 little more. Every lane reads 16 neighbouring bytes of
// a weight row and of a row of x: the inner index is permuted the same way in both operands, so neither needs
// a layout of its own. Warps of a block may share an output tile and split the inner index between them.
// Weights are loaded ahead, the first of them before the kernel waits for its inputs. Fused where a caller
// asks: RMSNorm before (its factor is applied to the sums), and after the product the residual sum, or
// silu(gate) * up with a tile of eight gate rows and their eight up rows. Bytes: the weight once.
#include <algorithm>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/tile.h"
#include "backend/cuda/weight.cuh"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kAhead = 8;  // steps of 32 inputs whose weights are in flight

// Shares of the work: kSplit warps share a tile; a tile has 16 rows, or 8 where there are few (kHalf).
template <class T_, int kTiles_, int kSplit_, bool kHalf_>
struct Shape {
  using T = T_;
  static constexpr int kTiles = kTiles_;  // of 8 rows of x
  static constexpr int kSplit = kSplit_;
  static constexpr bool kHalf = kHalf_;
  static constexpr int kColumns = 8 * kTiles;
  static constexpr int kGroups = kWarps / kSplit;  // tiles that a block works on at once
  static_assert(kWarps % kSplit == 0);
};

__device__ __forceinline__ uint4 load_weight(const uint4* at) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
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

struct Weights {
  uint4 upper[kAhead], lower[kAhead];
};

// Loads the weights of one step; rows beyond the last repeat it.
template <class S>
__device__ __forceinline__ void load_step(const TileArgs& a, int32_t tile, int32_t step, int i, Weights& w) {
  const int32_t lane = threadIdx.x % 32, last = a.out - 1;
  const LaneRows rows = rows_of<S>(a, tile, lane / 4);
  const auto* base = static_cast<const typename S::T*>(a.weights);
  const int64_t column = static_cast<int64_t>(step) * 32 + lane % 4 * 8;
  w.upper[i] =
      load_weight(reinterpret_cast<const uint4*>(base + min(rows.upper, last) * a.weight_stride + column));
  if (!S::kHalf)
    w.lower[i] =
        load_weight(reinterpret_cast<const uint4*>(base + min(rows.lower, last) * a.weight_stride + column));
}

// The inputs that every tile reads, copied to shared memory where they fit: rows of a.in and a pad that keeps
// the eight rows that a warp reads at once in different banks.
constexpr int kPad = 32;
template <class T>
__device__ __forceinline__ T* staged_inputs() {
  extern __shared__ __align__(16) unsigned char dynamic_shared[];
  return reinterpret_cast<T*>(dynamic_shared);
}

template <class S>
struct Shared {
  float sums[2][kWarps][16][S::kColumns];  // two rounds take turns
  float squares[S::kColumns][kWarps];      // of a row of x, by parts
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

// Copies x to shared memory, times the norm's weights where there is a norm. parts: warps that share a row.
template <class S>
__device__ void stage_inputs(const TileArgs& a, int32_t parts, Shared<S>& shared) {
  using T = typename S::T;
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = warp % parts;
  T* staged = staged_inputs<T>();
  for (int32_t r = warp / parts; r < a.rows; r += kWarps / parts) {
    const T* from = static_cast<const T*>(a.x) + r * a.x_stride;
    float squares = 0;
    for (int32_t i = part * 32 + lane; i < a.in / 8; i += 32 * parts) {
      uint4 raw = reinterpret_cast<const uint4*>(from)[i];
      if (a.norm != nullptr) squares += scale_inputs<T>(raw, a.norm + 8 * i);
      reinterpret_cast<uint4*>(staged + r * (a.in + kPad))[i] = raw;
    }
    if (a.norm == nullptr) continue;
    squares = warp_sum(squares);
    if (lane == 0) shared.squares[r][part] = squares;
  }
  __syncthreads();
}

template <class S>
__device__ __forceinline__ void multiply_step(const TileArgs& a, int32_t step, const Weights& w, int i,
                                              float (&sums)[S::kTiles][4]) {
  using T = typename S::T;
  const int32_t lane = threadIdx.x % 32, column = step * 32 + lane % 4 * 8;
#pragma unroll
  for (int t = 0; t < S::kTiles; ++t) {
    const int32_t row = t * 8 + lane / 4;
    uint4 x = make_uint4(0, 0, 0, 0);
    if (row < a.rows)
      x = *reinterpret_cast<const uint4*>(a.staged ? staged_inputs<T>() + row * (a.in + kPad) + column
                                                   : static_cast<const T*>(a.x) + row * a.x_stride + column);
    const uint4 upper = w.upper[i], lower = S::kHalf ? make_uint4(0, 0, 0, 0) : w.lower[i];
    mma<T>(sums[t], upper.x, lower.x, upper.y, lower.y, x.x, x.y);
    mma<T>(sums[t], upper.z, lower.z, upper.w, lower.w, x.z, x.w);
  }
}

// Writes what came of one output (two, of a pair or a full tile) for one row of x.
template <class S>
__device__ __forceinline__ void emit(const TileArgs& a, int32_t o, int32_t r, float value) {
  using T = typename S::T;
  if (a.y_is_float) {
    static_cast<float*>(a.y)[r * a.y_stride + o] = value;
    return;
  }
  const T rounded = from_float<T>(value);
  static_cast<T*>(a.y)[r * a.y_stride + o] = rounded;
  if (a.residual != nullptr) {
    T* to = static_cast<T*>(a.residual) + r * a.residual_stride + o;
    *to = from_float<T>(to_float(*to) + to_float(rounded));
  }
}

// The factor of RMSNorm for a row of x.
template <class S>
__device__ __forceinline__ float norm_factor(const TileArgs& a, const Shared<S>& shared, int32_t parts,
                                             int32_t r) {
  if (a.norm == nullptr) return 1;
  float sum = 0;
  for (int32_t part = 0; part < parts; ++part) sum += shared.squares[r][part];
  return 1 / sqrtf(sum / static_cast<float>(a.in) + a.eps);
}

// Adds the warps' shares of a tile and writes its outputs. Threads: those of the warps that share it.
template <class S>
__device__ void finish_tile(const TileArgs& a, int32_t tile, const Shared<S>& shared, int32_t parts,
                            int round) {
  using T = typename S::T;
  const int32_t warp = threadIdx.x / 32, first_warp = warp / S::kSplit * S::kSplit;
  const int32_t thread = threadIdx.x - first_warp * 32;
  for (int32_t i = thread; i < 8 * S::kColumns; i += 32 * S::kSplit) {
    const int32_t r = i / 8, index = i % 8;
    if (r >= a.rows) continue;
    const LaneRows rows = rows_of<S>(a, tile, index);
    if (rows.upper >= a.out) continue;
    float upper = 0, lower = 0;
#pragma unroll
    for (int s = 0; s < S::kSplit; ++s) {
      upper += shared.sums[round][first_warp + s][index][r];
      if (!S::kHalf) lower += shared.sums[round][first_warp + s][index + 8][r];
    }
    const float factor = norm_factor(a, shared, parts, r);
    upper = upper * factor + (a.bias != nullptr ? a.bias[rows.upper] : 0.0f);
    emit<S>(a, rows.upper, r, upper);
    if (S::kHalf || rows.lower >= a.out) continue;
    lower = lower * factor + (a.bias != nullptr ? a.bias[rows.lower] : 0.0f);
    emit<S>(a, rows.lower, r, lower);
    if (a.pair > 0) {
      const float gate = to_float(from_float<T>(upper)), up = to_float(from_float<T>(lower));
      static_cast<T*>(a.gated)[r * a.gated_stride + rows.upper] = from_float<T>(silu(gate) * up);
    }
  }
}

// The normed rows themselves, which the sequence of ops has as an output too. One block writes them.
template <class S>
__device__ void write_normed(const TileArgs& a, const Shared<S>& shared, int32_t parts) {
  using T = typename S::T;
  for (int32_t r = 0; r < a.rows; ++r) {
    const float factor = norm_factor(a, shared, parts, r);
    for (int32_t i = threadIdx.x; i < a.in; i += 32 * kWarps)
      static_cast<T*>(a.normed)[r * a.normed_stride + i] =
          from_float<T>(to_float(static_cast<const T*>(a.x)[r * a.x_stride + i]) * factor * a.norm[i]);
  }
}

template <class S>
__device__ void put_sums(float (&sums)[S::kTiles][4], int round, Shared<S>& shared) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, column = lane % 4 * 2;
#pragma unroll
  for (int t = 0; t < S::kTiles; ++t) {
    float* upper = &shared.sums[round][warp][row][t * 8 + column];
    upper[0] = sums[t][0], upper[1] = sums[t][1];
    if (!S::kHalf) {
      float* lower = &shared.sums[round][warp][row + 8][t * 8 + column];
      lower[0] = sums[t][2], lower[1] = sums[t][3];
    }
  }
}

template <class S>
__global__ void __launch_bounds__(32 * kWarps, 2) tile_kernel(TileArgs a) {
  __shared__ Shared<S> shared;
  const int32_t warp = threadIdx.x / 32, steps = a.in / 32;
  const int32_t share = warp % S::kSplit;
  const int32_t begin = steps * share / S::kSplit, end = steps * (share + 1) / S::kSplit;
  const int32_t chunks = (end - begin + kAhead - 1) / kAhead;
  const int32_t stride = static_cast<int32_t>(gridDim.x) * S::kGroups;
  int32_t tile = static_cast<int32_t>(blockIdx.x) * S::kGroups + warp / S::kSplit;
  Weights weights;
#pragma unroll
  for (int i = 0; i < kAhead; ++i)
    if (begin + i < end) load_step<S>(a, tile, begin + i, i, weights);
  wait_for_inputs();
  let_next_start();
  const int32_t parts = a.rows == 1 ? 8 : a.rows == 2 ? 4 : a.rows <= 4 ? 2 : 1;
  if (a.staged) stage_inputs<S>(a, parts, shared);
  for (int32_t first = blockIdx.x * S::kGroups, round = 0; first < a.tiles; first += stride, ++round) {
    float sums[S::kTiles][4] = {};
    for (int32_t chunk = 0; chunk < chunks; ++chunk) {
      const bool more = chunk + 1 < chunks;
      const int32_t now = begin + chunk * kAhead, next = more ? now + kAhead : begin;
      const int32_t next_tile = more ? tile : tile + stride;
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (now + i < end) multiply_step<S>(a, now + i, weights, i, sums);
        if (next + i < end && next_tile < a.tiles) load_step<S>(a, next_tile, next + i, i, weights);
      }
    }
    put_sums<S>(sums, round % 2, shared);
    if constexpr (S::kSplit > 1) {
      __syncthreads();
    } else {
      __syncwarp();
    }
    if (tile < a.tiles) finish_tile<S>(a, tile, shared, parts, round % 2);
    if (round == 0 && a.normed != nullptr && blockIdx.x == gridDim.x - 1) write_normed<S>(a, shared, parts);
    tile += stride;
  }
}

constexpr size_t kPlainShared = size_t{12}
                                << 10;  // of dynamic shared memory, beside the static, without asking
constexpr size_t kMostShared = size_t{64} << 10;  // that two blocks find room for on every device

size_t staged_bytes(int32_t rows, int32_t in) {
  return static_cast<size_t>(rows) * static_cast<size_t>(in + kPad) * 2;
}

template <class S>
void launch_shape(const Queue& queue, TileArgs args) {
  args.tiles = ceil_div(args.pair > 0 ? args.pair : args.out, S::kHalf || args.pair > 0 ? 8 : 16);
  const int32_t blocks = std::min(ceil_div(args.tiles, S::kGroups), 2 * queue.num_sms);
  const size_t staged = args.staged ? staged_bytes(args.rows, args.in) : 0;
  if (staged > kPlainShared)
    WH_CHECK(cudaFuncSetAttribute(tile_kernel<S>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(staged)) == cudaSuccess,
             "{} bytes of shared memory", staged);
  launch(queue, "linear", tile_kernel<S>, dim3(static_cast<unsigned>(blocks)), 32 * kWarps, staged, args);
}

template <class T, int kTiles>
void launch_tiles(const Queue& queue, const TileArgs& args) {
  const int32_t tiles = ceil_div(args.out, 16);
  if (tiles >= 16 * queue.num_sms) return launch_shape<Shape<T, kTiles, 1, false>>(queue, args);
  // So many warps a tile that every block has its share at once: two blocks fit on a multiprocessor.
  if (tiles > 4 * queue.num_sms) return launch_shape<Shape<T, kTiles, 2, false>>(queue, args);
  if (tiles >= 2 * queue.num_sms || args.pair > 0)
    return launch_shape<Shape<T, kTiles, 4, false>>(queue, args);
  launch_shape<Shape<T, kTiles, 8, true>>(queue, args);
}

bool on_sixteen(const void* data, int64_t stride) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride % 8 == 0;
}

}  // namespace

bool tiles_can_norm(ConstMat x) { return staged_bytes(x.rows, x.cols) <= kMostShared; }

bool tiles_fit(ConstMat x, const WeightView& w) {
  const bool same = (x.dtype == DType::kF16 && w.kind == LinearKind::kF16) ||
                    (x.dtype == DType::kBF16 && w.kind == LinearKind::kBF16);
  return same && x.rows <= kMaxTileRows && w.in % 32 == 0 && on_sixteen(x.data, x.stride);
}

void linear_tiles(const Queue& queue, DType dtype, const TileArgs& args) {
  const auto by_rows = [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if (args.rows <= 8) return launch_tiles<T, 1>(queue, args);
    if (args.rows <= 16) return launch_tiles<T, 2>(queue, args);
    launch_tiles<T, 4>(queue, args);
  };
  dtype == DType::kF16 ? by_rows(Tag<__half>()) : by_rows(Tag<__nv_bfloat16>());
}

TileArgs tile_args(ConstMat x, const WeightView& w, Mat out) {
  TileArgs args;
  args.x = x.data;
  args.x_stride = x.stride;
  args.rows = x.rows;
  args.in = w.in;
  args.weights = w.codes;
  args.weight_stride = w.row_bytes / 2;
  args.out = w.out;
  args.bias = w.bias;
  args.y = out.data;
  args.y_stride = out.stride;
  args.y_is_float = out.dtype == DType::kF32;
  args.staged = staged_bytes(x.rows, x.cols) <= kMostShared;
  return args;
}

}  // namespace whippet::cuda
