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
// as an object for a warp's share of the chunks, multiply<kHalf>. Where kInCodes, also Ready<kHalf, kCells>,
// which makes numbers of a warp's kCells chunks before the wait, so that what follows it is that of dense
// weights; kCells is 0 where there is no such thing.
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

constexpr int kRegisterTiles = 2;  // of 16 rows, that a warp keeps ready in registers

// Where things lie in a block's shared memory, behind the weights.
template <class F, bool kHalf, int kCells>
struct Layout {
  int32_t ready;  // [tiles after kRegisterTiles][chunks] fragments of 16 rows, of 4096 bytes
  int32_t inputs, norm, input_sums, sums, size;
  __host__ __device__ Layout(const TileArgs& a, int32_t tiles) {
    constexpr int32_t height = kHalf ? 8 : 16;
    ready = tiles * F::tile_bytes(a, height);
    inputs = ready;
    if (!kHalf && kCells > 0 && tiles > kRegisterTiles) inputs += (tiles - kRegisterTiles) * a.in * 32;
    norm = inputs + (kCells == 1 ? 0 : a.rows * a.in * 2);
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
__device__ __forceinline__ void start_copies(const TileArgs& a, int32_t first, int32_t count, int32_t norm_at,
                                             uint32_t barriers) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_shared));
  if (threadIdx.x <= kMostTiles) open_barrier(barriers + 8 * threadIdx.x);
  __syncthreads();
  for (int32_t t = warp; t < count; t += kWarps)
    F::template start_tile<kHalf>(a, first + t, shared + t * F::tile_bytes(a, kHalf ? 8 : 16),
                                  barriers + 8 * t);
  if (a.norm == nullptr || warp != kWarps - 1 || lane != 0) return;
  expect_bytes(barriers + 8 * kMostTiles, static_cast<uint32_t>(a.in * 4));
  copy_bulk(shared + norm_at, a.norm, static_cast<uint32_t>(a.in * 4), barriers + 8 * kMostTiles);
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

// Multiplies eight inputs by the norm's weights; adds the squares before.
template <class T>
__device__ __forceinline__ void scale_eight(uint4& raw, const float* norm, float& squares) {
  T* values = reinterpret_cast<T*>(&raw);
  const float4 a = *reinterpret_cast<const float4*>(norm);
  const float4 b = *reinterpret_cast<const float4*>(norm + 4);
  const float weights[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float value = to_float(values[j]);
    squares = fmaf(value, value, squares);
    values[j] = from_float<T>(value * weights[j]);
  }
}

// The inputs of a lane in the one chunk of its warp, which need not lie in shared memory.
template <class T>
struct ChunkInputs {
  uint4 x[4];
  __device__ __forceinline__ void load(const T* from, bool present) {
#pragma unroll
    for (int s = 0; s < 4; ++s)
      x[s] = present ? __ldcg(reinterpret_cast<const uint4*>(from + 32 * s)) : make_uint4(0, 0, 0, 0);
  }
  __device__ __forceinline__ float scale(const float* norm) {
    float squares = 0;
#pragma unroll
    for (int s = 0; s < 4; ++s) scale_eight<T>(x[s], norm + 32 * s, squares);
    return squares;
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
    scale_eight<T>(raw, norm + 32 * s, squares);
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

template <class F, bool kHalf, int kCells>
struct ReadyOf {
  using Type = typename F::template Ready<kHalf, kCells>;
};
template <class F, bool kHalf>
struct ReadyOf<F, kHalf, 0> {
  struct Type {};
};

// Where a warp's sums of one tile after the other go: [tile][warp][row][height].
template <bool kHalf>
struct Sums {
  float* to;
  int32_t rows, pitch;  // rows of this lane
  __device__ __forceinline__ void put(const float (&sums)[4]) {
    constexpr int kHeight = kHalf ? 8 : 16;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if (j >= rows) break;
      to[j * kHeight] = sums[j];
      if (!kHalf) to[j * kHeight + 8] = sums[j + 2];
    }
    to += pitch;
  }
};

template <class F, bool kHalf, int kCells, class Ready>
__device__ __forceinline__ void multiply_tiles(const TileArgs& a, const F& weights, const Ready& ready,
                                               uint32_t tiles, uint32_t barriers,
                                               const ChunkInputs<typename F::T>& chunk, const Inputs& inputs,
                                               int32_t count, int32_t chunks, Sums<kHalf>& to) {
  if constexpr (kCells == 1) {
    ready.multiply(weights, tiles, chunk, count, chunks, to);
  } else if constexpr (kCells > 1) {
    ready.multiply(weights, tiles, inputs, chunks, to);
  } else {
    if (F::kSums && !kHalf) sum_inputs<typename F::T>(inputs, chunks * 4);
#pragma unroll 1
    for (int32_t t = 0; t < count; ++t) {
      float sums[4] = {};
      wait_barrier(barriers + 8 * t);
      weights.template multiply<kHalf>(tiles + t * F::tile_bytes(a, kHalf ? 8 : 16), inputs, chunks, sums);
      to.put(sums);
    }
  }
}

template <class F, bool kHalf, int kCells>
__global__ void __launch_bounds__(kThreads, kCells > 0 ? 2 : F::kBlocks) bulk_kernel(TileArgs a) {
  using T = typename F::T;
  constexpr int kHeight = kHalf ? 8 : 16;
  __shared__ uint64_t arrived[kMostTiles + 1];
  __shared__ float squares[kRows][kWarps];
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, part = lane % 4;
  const int32_t blocks = gridDim.x, block = blockIdx.x;
  const int32_t first = a.tiles * block / blocks, count = a.tiles * (block + 1) / blocks - first;
  const Layout<F, kHalf, kCells> at(a, count);
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_shared));
  const auto barriers = static_cast<uint32_t>(__cvta_generic_to_shared(arrived));
  start_copies<F, kHalf>(a, first, count, at.norm, barriers);
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
  Sums<kHalf> sums_of{sums_at + (warp * a.rows + part * 2) * kHeight + group, a.rows - part * 2,
                      kWarps * a.rows * kHeight};
  Output<T, kHalf> output(a, first, min(static_cast<int32_t>(threadIdx.x), outputs - 1));
  typename ReadyOf<F, kHalf, kCells>::Type ready;
  if constexpr (kCells > 0)
    ready.prepare(weights, shared, shared + at.ready + begin * 4096, a.in * 32, barriers, count, chunks);
  if (a.norm != nullptr) wait_barrier(barriers + 8 * kMostTiles);

  wait_for_inputs();
  ChunkInputs<T> chunk;
  if (kCells == 1) {
    chunk.load(x, inputs.has_row && chunks > 0);
  } else {
    if (inputs.has_row)
      for (int32_t s = 0; s < chunks * 4; ++s) copy_sixteen(inputs.at + s * inputs.step_bytes, x + s * 32);
    commit_copies();
  }
  output.load_residual(a);
  if (kCells != 1) wait_copies<0>();
  if (a.norm != nullptr) {
    float sum = 0;
    if (kCells == 1) sum = chunk.scale(norm);
    if (kCells != 1 && inputs.has_row) sum = scale_inputs<T>(inputs.at, inputs.step_bytes, chunks * 4, norm);
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    if (part == 0) squares[group][warp] = sum;
  }
  multiply_tiles<F, kHalf, kCells>(a, weights, ready, shared, barriers, chunk, inputs, count, chunks,
                                   sums_of);
  __syncthreads();
  finish<T, kHalf>(a, first, outputs, sums_at, squares, output);
}

// Codes take less of the shared memory than dense weights. So that blocks of a kernel spread over the
// multiprocessors as those do, and none has two while another has none, they ask for as much, up to half.
constexpr int32_t kHalfOfShared = 115 << 10;

template <class F, bool kHalf, int kCells>
bool launch_bulk_shape(const Queue& queue, TileArgs& args) {
  args.tiles = ceil_div(args.pair > 0 ? args.pair : args.out, kHalf || args.pair > 0 ? 8 : 16);
  const int32_t most = std::min(args.tiles, queue.num_sms), of_block = ceil_div(args.tiles, most);
  if (of_block > kMostTiles) return false;
  // As few blocks as end as early: the others leave multiprocessors to the kernel ahead.
  const int32_t blocks = kCells > 0 ? ceil_div(args.tiles, of_block) : most;
  int32_t size = Layout<F, kHalf, kCells>(args, of_block).size;
  if (size > queue.shared_bytes - 1024) return false;
  if (F::kInCodes && kCells == 0)
    size = std::max(size, std::min(of_block * (kHalf ? 8 : 16) * args.in * 2, kHalfOfShared));
  // All that there is: layers of other sizes run by the same kernel, and graphs keep what was recorded of it.
  prefer_shared(bulk_kernel<F, kHalf, kCells>, queue.shared_bytes - 1024, "linear");
  launch(queue, "linear", bulk_kernel<F, kHalf, kCells>, dim3(static_cast<unsigned>(blocks)), kThreads,
         static_cast<size_t>(size), args);
  return true;
}

// As launch_bulk, where the weights of a warp can be numbers before the wait.
template <class F>
bool launch_ready(const Queue& queue, TileArgs& args) {
  if (args.cell_groups != 1) return false;
  const int32_t chunks = ceil_div(args.in / kChunk, kWarps);
  const bool half = args.pair == 0 && ceil_div(args.out, 8) <= queue.num_sms;
  if (chunks == 1)
    return half ? launch_bulk_shape<F, true, 1>(queue, args) : launch_bulk_shape<F, false, 1>(queue, args);
  return half && chunks <= F::kMostCells && launch_bulk_shape<F, true, F::kMostCells>(queue, args);
}

// false where a block has no room for its weights, or the kernel does not suit.
template <class F>
bool launch_bulk(const Queue& queue, TileArgs args) {
  const bool suits = queue.early_start && args.rows <= kRows && args.in % kChunk == 0 && !args.y_is_float &&
                     args.normed == nullptr && reinterpret_cast<uintptr_t>(args.norm) % 16 == 0;
  if (!suits) return false;
  if constexpr (F::kInCodes && !F::kSums)
    if (launch_ready<F>(queue, args)) return true;
  if (args.pair > 0 || ceil_div(args.out, 16) >= queue.num_sms)
    return launch_bulk_shape<F, false, 0>(queue, args);
  return launch_bulk_shape<F, true, 0>(queue, args);
}

}  // namespace whippet::cuda
