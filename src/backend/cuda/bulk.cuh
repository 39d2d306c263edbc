// Products of up to 8 rows of fp16 or bf16 whose weights fit into the shared memory of the device, for any
// format of them: a block has some output tiles of 16 rows of the weight (8 where there are few), and brings
// them there whole with the bulk copy engine (sm_90 on) before it waits for its inputs. The warps of a block
// split the inner index between them in chunks of 128, a lane's inputs lie where it alone reads them. What
// comes after the wait is all latency, a handful of warps on each multiprocessor, so it is kept short: no
// branch within a chunk, and all that is known before is done before. Fused as in tile_kernels.cu. Bytes: the
// weight once. Used by bulk_kernels.cu and code_kernels.cu.
//
// A format F has: T, what it multiplies in; kSums, whether it wants sums of the inputs (sum_inputs);
// tile_bytes(args, height); start_tile<kHalf>(args, tile, to, barrier), the copies of a tile by a warp; and
// as an object for a warp's share of the chunks, multiply<kHalf>.
#pragma once

#include <algorithm>

#include "backend/cuda/copy.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/tile.h"
#include "base/math.h"

namespace whippet::cuda {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kRows = 8;
constexpr int kChunk = 128;  // columns, four steps of a product
constexpr int kMostTiles = 8;

extern __shared__ __align__(128) unsigned char dynamic_shared[];

// Where things lie in a block's shared memory, behind the weights.
template <class F>
struct Layout {
  int32_t inputs, norm, input_sums, sums, size;
  __host__ __device__ Layout(const TileArgs& a, int32_t height, int32_t tiles) {
    inputs = tiles * F::tile_bytes(a, height);
    norm = inputs + a.rows * a.in * 2;
    input_sums = norm + (a.norm != nullptr ? a.in * 4 : 0);
    sums = input_sums + (F::kSums ? a.in : 0);
    size = sums + tiles * kWarps * a.rows * height * 4;
  }
};

// The inputs of a lane: row `lane / 4` of x, of each step the part `lane % 4` of 8 columns.
struct Inputs {
  uint32_t at;  // its first step
  int32_t step_bytes;
  bool has_row;
  uint32_t sums_at;  // [steps][8 rows] fp32, where the format wants them: its first step
  __device__ __forceinline__ uint4 load(int32_t step) const {
    return has_row ? load_shared(at + step * step_bytes) : make_uint4(0, 0, 0, 0);
  }
  __device__ __forceinline__ void pass_chunk() {
    at += 4 * step_bytes;
    sums_at += 4 * 32;
  }
};

// The row of the weight that is row i of a tile.
template <bool kHalf>
__device__ __forceinline__ int32_t weight_row(const TileArgs& a, int32_t tile, int32_t i) {
  if (kHalf) return tile * 8 + i;
  if (a.pair > 0) return tile * 8 + i % 8 + (i < 8 ? 0 : a.pair);
  return tile * 16 + i;
}

// Puts the weights of tiles [first, first + count) and the norm's under way, each with a barrier of its own.
template <class F, bool kHalf>
__device__ __forceinline__ void start_copies(const TileArgs& a, int32_t first, int32_t count,
                                             const Layout<F>& at, uint32_t barriers) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_shared));
  if (threadIdx.x <= kMostTiles) open_barrier(barriers + 8 * threadIdx.x);
  __syncthreads();
  for (int32_t t = warp; t < count; t += kWarps)
    F::template start_tile<kHalf>(a, first + t, shared + t * F::tile_bytes(a, kHalf ? 8 : 16),
                                  barriers + 8 * t);
  if (a.norm == nullptr || warp != kWarps - 1 || lane != 0) return;
  expect_bytes(barriers + 8 * kMostTiles, static_cast<uint32_t>(a.in * 4));
  copy_bulk(shared + at.norm, a.norm, static_cast<uint32_t>(a.in * 4), barriers + 8 * kMostTiles);
}

// What is written for one row of x and row i of a tile's upper half (and of its lower).
template <class T, bool kHalf>
struct Output {
  int32_t row, tile, index;
  int32_t upper, lower;  // rows of the weight
  float bias[2] = {0, 0}, residual[2] = {0, 0};

  // Number i of a block that begins with tile `first`.
  __device__ Output(const TileArgs& a, int32_t first, int32_t i)
      : Output(a, first, a.rows == 1 ? i / 8 : i / 8 / a.rows, a.rows == 1 ? 0 : i / 8 % a.rows, i % 8) {}
  __device__ Output(const TileArgs& a, int32_t first, int32_t tile_, int32_t row_, int32_t index_)
      : row(row_), tile(tile_), index(index_) {
    upper = weight_row<kHalf>(a, first + tile, index);
    lower = kHalf ? a.out : weight_row<kHalf>(a, first + tile, index + 8);
    if (a.bias == nullptr) return;
    if (upper < a.out) bias[0] = __ldg(a.bias + upper);
    if (lower < a.out) bias[1] = __ldg(a.bias + lower);
  }
  __device__ __forceinline__ void load_residual(const TileArgs& a) {
    if (a.residual == nullptr) return;
    const T* from = static_cast<const T*>(a.residual) + row * a.residual_stride;
    if (upper < a.out) residual[0] = to_float(__ldcg(from + upper));
    if (lower < a.out) residual[1] = to_float(__ldcg(from + lower));
  }
  __device__ __forceinline__ T write(const TileArgs& a, int32_t o, float value, float before) const {
    const T rounded = from_float<T>(value);
    if (a.y != nullptr) static_cast<T*>(a.y)[row * a.y_stride + o] = rounded;
    if (a.residual != nullptr)
      static_cast<T*>(a.residual)[row * a.residual_stride + o] = from_float<T>(before + to_float(rounded));
    return rounded;
  }
  __device__ __forceinline__ void write(const TileArgs& a, float high, float low) const {
    if (upper >= a.out) return;
    const T first = write(a, upper, high + bias[0], residual[0]);
    if (lower >= a.out) return;
    const T second = write(a, lower, low + bias[1], residual[1]);
    if (a.pair == 0) return;
    const float gate = to_float(first);
    static_cast<T*>(a.gated)[row * a.gated_stride + upper] =
        from_float<T>(__fdividef(gate, 1 + __expf(-gate)) * to_float(second));
  }
};

// Multiplies a lane's inputs by the norm's weights where they lie; returns the sum of the squares before.
template <class T>
__device__ __forceinline__ float scale_inputs(uint32_t inputs, int32_t step_bytes, int32_t steps,
                                              const float* norm) {
  float squares = 0;
#pragma unroll 4
  for (int32_t s = 0; s < steps; ++s) {
    uint4 raw = load_shared(inputs + s * step_bytes);
    T* values = reinterpret_cast<T*>(&raw);
    const float4 a = *reinterpret_cast<const float4*>(norm + 32 * s);
    const float4 b = *reinterpret_cast<const float4*>(norm + 32 * s + 4);
    const float weights[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float value = to_float(values[j]);
      squares = fmaf(value, value, squares);
      values[j] = from_float<T>(value * weights[j]);
    }
    store_shared(inputs + s * step_bytes, raw);
  }
  return squares;
}

// Sums over each of a warp's steps of every row of x, by a product with ones.
template <class T>
__device__ __forceinline__ void sum_inputs(Inputs x, int32_t steps) {
  constexpr uint32_t kOnes = std::is_same_v<T, __half> ? 0x3c003c00 : 0x3f803f80;
  const int32_t lane = threadIdx.x % 32;
#pragma unroll 4
  for (int32_t s = 0; s < steps; ++s) {
    const uint4 values = x.load(s);
    float sums[4] = {};
    mma<T>(sums, kOnes, kOnes, kOnes, kOnes, values.x, values.y);
    mma<T>(sums, kOnes, kOnes, kOnes, kOnes, values.z, values.w);
    if (lane < 4) store_shared(x.sums_at + s * 32 + lane * 8, sums[0], sums[1]);
  }
  __syncwarp();
}

// Adds the warps' shares and writes the block's outputs; `output` is this thread's first.
template <class T, bool kHalf>
__device__ __forceinline__ void finish(const TileArgs& a, int32_t first, int32_t outputs,
                                       const float* sums_at, const float (&squares)[kRows][kWarps],
                                       Output<T, kHalf>& output) {
  constexpr int kHeight = kHalf ? 8 : 16;
  for (int32_t i = threadIdx.x; i < outputs; i += kThreads) {
    if (i >= kThreads) {
      output = Output<T, kHalf>(a, first, i);
      output.load_residual(a);
    }
    const float* from = sums_at + (output.tile * kWarps * a.rows + output.row) * kHeight + output.index;
    float upper = 0, lower = 0, square = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      upper += from[w * a.rows * kHeight];
      if (!kHalf) lower += from[w * a.rows * kHeight + 8];
      square += squares[output.row][w];
    }
    const float factor = a.norm != nullptr ? rsqrtf(__fdividef(square, static_cast<float>(a.in)) + a.eps) : 1;
    output.write(a, upper * factor, lower * factor);
  }
}

template <class F, bool kHalf>
__global__ void __launch_bounds__(kThreads, F::kBlocks) bulk_kernel(TileArgs a) {
  using T = typename F::T;
  constexpr int kHeight = kHalf ? 8 : 16;
  __shared__ uint64_t arrived[kMostTiles + 1];
  __shared__ float squares[kRows][kWarps];
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, part = lane % 4;
  const int32_t blocks = gridDim.x, block = blockIdx.x;
  const int32_t first = a.tiles * block / blocks, count = a.tiles * (block + 1) / blocks - first;
  const Layout<F> at(a, kHeight, count);
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_shared));
  const auto barriers = static_cast<uint32_t>(__cvta_generic_to_shared(arrived));
  start_copies<F, kHalf>(a, first, count, at, barriers);
  let_next_start();  // what it does before its own wait reads nothing that changes

  const int32_t begin = a.in / kChunk * warp / kWarps, chunks = a.in / kChunk * (warp + 1) / kWarps - begin;
  const int32_t step = begin * 4, outputs = count * a.rows * 8;
  Inputs inputs;
  inputs.step_bytes = a.rows * 64;
  inputs.has_row = group < a.rows;
  inputs.at = shared + at.inputs + step * inputs.step_bytes + group * 64 + part * 16;
  inputs.sums_at = shared + at.input_sums + step * 32;
  const T* x = static_cast<const T*>(a.x) + min(group, a.rows - 1) * a.x_stride + step * 32 + part * 8;
  const F weights(a, begin);
  const auto* norm = reinterpret_cast<const float*>(dynamic_shared + at.norm) + step * 32 + part * 8;
  float* sums_at = reinterpret_cast<float*>(dynamic_shared + at.sums);
  float* to = sums_at + (warp * a.rows + part * 2) * kHeight + group;
  Output<T, kHalf> output(a, first, min(static_cast<int32_t>(threadIdx.x), outputs - 1));
  if (a.norm != nullptr) wait_barrier(barriers + 8 * kMostTiles);

  wait_for_inputs();
  if (inputs.has_row)
    for (int32_t s = 0; s < chunks * 4; ++s) copy_sixteen(inputs.at + s * inputs.step_bytes, x + s * 32);
  commit_copies();
  output.load_residual(a);
  wait_copies<0>();
  if (a.norm != nullptr) {
    float sum = inputs.has_row ? scale_inputs<T>(inputs.at, inputs.step_bytes, chunks * 4, norm) : 0;
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    if (part == 0) squares[group][warp] = sum;
  }
  if (F::kSums && !kHalf) sum_inputs<T>(inputs, chunks * 4);
#pragma unroll 1
  for (int32_t t = 0; t < count; ++t) {
    float sums[4] = {};
    wait_barrier(barriers + 8 * t);
    weights.template multiply<kHalf>(shared + t * F::tile_bytes(a, kHeight), inputs, chunks, sums);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if (part * 2 + j >= a.rows) break;
      to[j * kHeight] = sums[j];
      if (!kHalf) to[j * kHeight + 8] = sums[j + 2];
    }
    to += kWarps * a.rows * kHeight;
  }
  __syncthreads();
  finish<T, kHalf>(a, first, outputs, sums_at, squares, output);
}

template <class F, bool kHalf>
bool launch_bulk_shape(const Queue& queue, TileArgs& args) {
  args.tiles = ceil_div(args.pair > 0 ? args.pair : args.out, kHalf || args.pair > 0 ? 8 : 16);
  const int32_t blocks = std::min(args.tiles, queue.num_sms), of_block = ceil_div(args.tiles, blocks);
  if (of_block > kMostTiles) return false;
  const Layout<F> layout(args, kHalf ? 8 : 16, of_block);
  if (layout.size > queue.shared_bytes - 1024) return false;
  prefer_shared(bulk_kernel<F, kHalf>, layout.size, "linear");
  launch(queue, "linear", bulk_kernel<F, kHalf>, dim3(static_cast<unsigned>(blocks)), kThreads,
         static_cast<size_t>(layout.size), args);
  return true;
}

// false where a block has no room for its weights, or the kernel does not suit.
template <class F>
bool launch_bulk(const Queue& queue, TileArgs args) {
  const bool suits = queue.early_start && args.rows <= kRows && args.in % kChunk == 0 && !args.y_is_float &&
                     args.normed == nullptr && reinterpret_cast<uintptr_t>(args.norm) % 16 == 0;
  if (!suits) return false;
  if (args.pair > 0 || ceil_div(args.out, 16) >= queue.num_sms)
    return launch_bulk_shape<F, false>(queue, args);
  return launch_bulk_shape<F, true>(queue, args);
}

}  // namespace whippet::cuda
