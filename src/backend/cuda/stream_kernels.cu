// Products of up to 8 rows of fp16 or bf16 whose weights do not fit into the shared memory of the device
// (where they do: bulk.cuh): they pass through it in a ring of stages, each the 1,024 columns of a tile's 8
// or 16 rows that the bulk copy engine brings (sm_90 on). One warp fills the ring, from before the wait for
// the inputs on; eight multiply, a chunk of 128 columns of each stage, and only tell that they have read it.
// Every eight tiles the shares of the warps are added and written. Fused as in tile_kernels.cu; logits are
// fp32. Bytes: the weight once.
#include <algorithm>

#include "backend/cuda/bulk.cuh"
#include "backend/cuda/stream.h"

namespace whippet::cuda {
namespace {

constexpr int kStageColumns = kWarps * kChunk;
constexpr int kMostStages = 12;  // 203 KB of 8 rows
// Rows of a stage lie so far apart that a warp reads them from different banks.
constexpr int32_t kPitch = kStageColumns * 2 + 64;

template <bool kHalf>
struct Ring {
  static constexpr int32_t kHeight = kHalf ? 8 : 16;
  static constexpr int32_t kStageBytes = kHeight * kPitch;
  int32_t parts;  // stages of a tile
  int32_t inputs, norm, sums, size;
  __host__ __device__ Ring(const TileArgs& a, int32_t stages) {
    parts = ceil_div(a.in, kStageColumns);
    inputs = stages * kStageBytes;
    norm = inputs + a.rows * parts * kStageColumns * 2;
    sums = norm + (a.norm != nullptr ? a.in * 4 : 0);
    size = sums + a.round_tiles * kWarps * a.rows * kHeight * 4;
  }
};

// Barriers of the stages in shared memory: the bytes came; all warps have read them.
struct Barriers {
  uint32_t full, empty;
};

// A barrier for one arrival of each warp that reads.
__device__ __forceinline__ void open_barrier_of_readers(uint32_t barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared.b64 [%0], %1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(barrier),
               "n"(kWarps)
               : "memory");
#endif
}
__device__ __forceinline__ void arrive_at_barrier(uint32_t barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
#endif
}

// Fills the ring, stage after stage of `count` tiles; by one warp.
template <class T, bool kHalf>
__device__ __forceinline__ void fill_ring(const TileArgs& a, int32_t first, int32_t count, int32_t parts,
                                          int32_t stages, uint32_t shared, Barriers barriers) {
  constexpr int kHeight = kHalf ? 8 : 16;
  const int32_t lane = threadIdx.x % 32;
  int32_t slot = 0;
  uint32_t parity = 1;  // of the round before: a ring that nobody has read from is empty
#pragma unroll 1
  for (int32_t t = 0; t < count; ++t) {
    const int64_t row = min(weight_row<kHalf>(a, first + t, lane), a.out - 1);  // beyond the last: it again
    const T* from = static_cast<const T*>(a.weights) + row * a.weight_stride;
#pragma unroll 1
    for (int32_t p = 0; p < parts; ++p) {
      const auto bytes = static_cast<uint32_t>(min(kStageColumns, a.in - p * kStageColumns) * 2);
      wait_barrier(barriers.empty + 8 * slot, parity);
      if (lane == 0) expect_bytes(barriers.full + 8 * slot, kHeight * bytes);
      __syncwarp();
      if (lane < kHeight)
        copy_bulk(shared + slot * Ring<kHalf>::kStageBytes + lane * kPitch, from + p * kStageColumns, bytes,
                  barriers.full + 8 * slot);
      if (++slot == stages) slot = 0, parity ^= 1;
    }
  }
}

// What a warp has of the ring and of the inputs.
template <class T, bool kHalf>
struct Reader {
  uint32_t weights;  // of this lane, in stage 0
  Barriers barriers;
  int32_t stages, parts, mine;  // of a tile's stages, and those in which this warp has columns
  int32_t slot = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void multiply(Inputs inputs, float (&sums)[4]) {
    float others[4] = {};  // every second product, so that two are under way
#pragma unroll 1
    for (int32_t p = 0; p < parts; ++p) {
      wait_barrier(barriers.full + 8 * slot, parity);
      const uint32_t at = weights + slot * Ring<kHalf>::kStageBytes;
      uint4 upper[4], lower[4], x[4];
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        upper[s] = load_shared(at + 64 * s);
        lower[s] = kHalf ? make_uint4(0, 0, 0, 0) : load_shared(at + 8 * kPitch + 64 * s);
        x[s] = inputs.load(s);
      }
      __syncwarp();
      if (threadIdx.x % 32 == 0) arrive_at_barrier(barriers.empty + 8 * slot);
      if (++slot == stages) slot = 0, parity ^= 1;
      if (p >= mine) break;  // always the last stage of a tile
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        mma<T>(sums, upper[s].x, lower[s].x, upper[s].y, lower[s].y, x[s].x, x[s].y);
        mma<T>(others, upper[s].z, lower[s].z, upper[s].w, lower[s].w, x[s].z, x[s].w);
      }
      inputs.pass_chunk();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] += others[i];
  }
};

// All warps but the one that fills the ring.
__device__ __forceinline__ void sync_readers() { asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory"); }

// As finish in bulk.cuh, of tiles of 16 rows whose outputs are fp32 and fused to nothing.
__device__ __forceinline__ void finish_logits(const TileArgs& a, int32_t first, int32_t tiles,
                                              const float* sums_at, const float (&squares)[kRows][kWarps]) {
  constexpr int kHeight = 16;
  for (int32_t i = threadIdx.x; i < tiles * a.rows * kHeight; i += kThreads) {
    const int32_t index = i % kHeight, row = i / kHeight % a.rows, tile = i / kHeight / a.rows;
    const int32_t o = (first + tile) * kHeight + index;
    if (o >= a.out) continue;
    const float* from = sums_at + (tile * kWarps * a.rows + row) * kHeight + index;
    float sum = 0, square = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      sum += from[w * a.rows * kHeight];
      square += squares[row][w];
    }
    if (a.norm != nullptr) sum *= rsqrtf(__fdividef(square, static_cast<float>(a.in)) + a.eps);
    static_cast<float*>(a.y)[row * a.y_stride + o] = sum + (a.bias != nullptr ? __ldg(a.bias + o) : 0.0f);
  }
}

// Brings the inputs of a warp's columns, from `x` on, to where each lane reads its own, times the norm's
// weights where there are any, and leaves the warp's share of the sums of squares.
template <class T>
__device__ __forceinline__ void take_inputs(const TileArgs& a, const Inputs& inputs, const T* x,
                                            const float* norm, int32_t mine,
                                            float (&squares)[kRows][kWarps]) {
  if (inputs.has_row)
    for (int32_t s = 0; s < mine * 4; ++s)
      copy_sixteen(inputs.at + s * inputs.step_bytes, x + s / 4 * kStageColumns + s % 4 * 32);
  commit_copies();
  wait_copies<0>();
  if (a.norm != nullptr) {
    float sum = 0;
    if (inputs.has_row)
      for (int32_t p = 0; p < mine; ++p)
        sum += scale_inputs<T>(inputs.at + p * 4 * inputs.step_bytes, inputs.step_bytes, 4,
                               norm + p * kStageColumns);
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const int32_t lane = threadIdx.x % 32;
    if (lane % 4 == 0) squares[lane / 4][threadIdx.x / 32] = sum;
  }
}

// Multiplies and writes `count` tiles from `first` on, a.round_tiles at a time.
template <class T, bool kHalf, bool kLogits>
__device__ __forceinline__ void multiply_rounds(const TileArgs& a, int32_t first, int32_t count,
                                                Reader<T, kHalf>& reader, const Inputs& inputs,
                                                float* sums_at, const float (&squares)[kRows][kWarps]) {
  constexpr int kHeight = kHalf ? 8 : 16;
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, part = lane % 4;
#pragma unroll 1
  for (int32_t done = 0; done < count; done += a.round_tiles) {
    const int32_t tiles = min(a.round_tiles, count - done), outputs = tiles * a.rows * 8;
    Output<T, kHalf> output(a, first + done, min(static_cast<int32_t>(threadIdx.x), outputs - 1));
    if (!kLogits) output.load_residual(a);
    Sums<kHalf> sums_of{sums_at + (warp * a.rows + part * 2) * kHeight + group, a.rows - part * 2,
                        kWarps * a.rows * kHeight};
#pragma unroll 1
    for (int32_t t = 0; t < tiles; ++t) {
      float sums[4] = {};
      reader.multiply(inputs, sums);
      sums_of.put(sums);
    }
    sync_readers();
    if constexpr (kLogits) {
      finish_logits(a, first + done, tiles, sums_at, squares);
    } else {
      finish<T, kHalf>(a, first + done, outputs, sums_at, squares, output);
    }
    if (done + tiles < count) sync_readers();
  }
}

template <class T, bool kHalf, bool kLogits>
__global__ void __launch_bounds__(kThreads + 32, 1) stream_kernel(TileArgs a, int32_t stages) {
  __shared__ uint64_t full_at[kMostStages], empty_at[kMostStages], norm_at;
  __shared__ float squares[kRows][kWarps];
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, part = lane % 4;
  const int32_t blocks = gridDim.x, block = blockIdx.x;
  const auto tile_of = [&](int32_t b) { return static_cast<int32_t>(int64_t{a.tiles} * b / blocks); };
  const int32_t first = tile_of(block), count = tile_of(block + 1) - first;
  const Ring<kHalf> at(a, stages);
  const auto address = [](const void* of) { return static_cast<uint32_t>(__cvta_generic_to_shared(of)); };
  const uint32_t shared = address(dynamic_shared), norm_barrier = address(&norm_at);
  const Barriers barriers{address(full_at), address(empty_at)};
  if (static_cast<int32_t>(threadIdx.x) < stages) {
    open_barrier(barriers.full + 8 * threadIdx.x);
    open_barrier_of_readers(barriers.empty + 8 * threadIdx.x);
  }
  if (threadIdx.x == kThreads - 1) open_barrier(norm_barrier);
  __syncthreads();
  let_next_start();  // what it does before its own wait reads nothing that changes
  if (warp == kWarps) {
    if (a.norm != nullptr && lane == 0) {
      expect_bytes(norm_barrier, static_cast<uint32_t>(a.in * 4));
      copy_bulk(shared + at.norm, a.norm, static_cast<uint32_t>(a.in * 4), norm_barrier);
    }
    fill_ring<T, kHalf>(a, first, count, at.parts, stages, shared, barriers);
    return;
  }

  const int32_t column = warp * kChunk, mine = column < a.in ? (a.in - column - 1) / kStageColumns + 1 : 0;
  Inputs inputs;
  inputs.step_bytes = a.rows * 64;
  inputs.has_row = group < a.rows;
  inputs.at = shared + at.inputs + warp * at.parts * 4 * inputs.step_bytes + group * 64 + part * 16;
  const T* x = static_cast<const T*>(a.x) + min(group, a.rows - 1) * a.x_stride + column + part * 8;
  const auto* norm = reinterpret_cast<const float*>(dynamic_shared + at.norm) + column + part * 8;
  float* sums_at = reinterpret_cast<float*>(dynamic_shared + at.sums);
  Reader<T, kHalf> reader{shared + group * kPitch + column * 2 + part * 16, barriers, stages, at.parts, mine};
  if (a.norm != nullptr) wait_barrier(norm_barrier);

  wait_for_inputs();
  take_inputs<T>(a, inputs, x, norm, mine, squares);
  multiply_rounds<T, kHalf, kLogits>(a, first, count, reader, inputs, sums_at, squares);
}

template <class T, bool kHalf, bool kLogits>
bool launch_stream_shape(const Queue& queue, TileArgs args, int32_t ring_bytes) {
  args.tiles = ceil_div(args.pair > 0 ? args.pair : args.out, kHalf || args.pair > 0 ? 8 : 16);
  const int32_t blocks = std::min(args.tiles, queue.num_sms), of_block = ceil_div(args.tiles, blocks);
  args.round_tiles = std::min(of_block, kMostTiles);
  const int32_t room = queue.shared_bytes - 1024 - Ring<kHalf>(args, 0).size;
  const int32_t stages = std::min(std::min(room, ring_bytes) / Ring<kHalf>::kStageBytes, kMostStages);
  if (stages < 2) return false;
  prefer_shared(stream_kernel<T, kHalf, kLogits>, queue.shared_bytes - 1024, "linear");
  launch(queue, "linear", stream_kernel<T, kHalf, kLogits>, dim3(static_cast<unsigned>(blocks)),
         kThreads + 32, static_cast<size_t>(Ring<kHalf>(args, stages).size), args, stages);
  return true;
}

template <class T>
bool launch_stream(const Queue& queue, const TileArgs& args, int32_t ring_bytes) {
  if (args.y_is_float)
    return args.residual == nullptr && args.pair == 0 &&
           launch_stream_shape<T, false, true>(queue, args, ring_bytes);
  if (args.pair > 0 || ceil_div(args.out, 16) >= queue.num_sms)
    return launch_stream_shape<T, false, false>(queue, args, ring_bytes);
  return launch_stream_shape<T, true, false>(queue, args, ring_bytes);
}

}  // namespace

bool linear_stream(const Queue& queue, DType dtype, const TileArgs& args, int32_t ring_bytes) {
  const bool suits = queue.early_start && args.rows <= kRows && args.in % kChunk == 0 &&
                     args.normed == nullptr && reinterpret_cast<uintptr_t>(args.norm) % 16 == 0;
  if (!suits) return false;
  return dtype == DType::kF16 ? launch_stream<__half>(queue, args, ring_bytes)
                              : launch_stream<__nv_bfloat16>(queue, args, ring_bytes);
}

}  // namespace whippet::cuda
