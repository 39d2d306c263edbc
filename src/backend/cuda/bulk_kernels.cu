// Products of few rows with dense weights of fp16 or bf16: bulk.cuh.
#include "backend/cuda/bulk.cuh"
#include "backend/cuda/stream.h"

namespace whippet::cuda {
namespace {

template <class T_>
class Dense {
 public:
  using T = T_;
  static constexpr bool kSums = false, kInCodes = false;
  static constexpr int kBlocks = 3;  // on a multiprocessor, by registers

  // Rows of a weight lie so far apart that a warp reads eight of them from different banks.
  __host__ __device__ static constexpr int32_t pitch_of(int32_t in) { return in * 2 + 64; }
  __host__ __device__ static int32_t tile_bytes(const TileArgs& a, int32_t height) {
    return height * pitch_of(a.in);
  }

  template <bool kHalf>
  __device__ static void start_tile(const TileArgs& a, int32_t tile, uint32_t to, uint32_t barrier) {
    constexpr int kHeight = kHalf ? 8 : 16;
    const int32_t lane = threadIdx.x % 32;
    if (lane == 0) expect_bytes(barrier, static_cast<uint32_t>(kHeight * a.in * 2));
    __syncwarp();
    if (lane >= kHeight) return;
    const int64_t row = min(weight_row<kHalf>(a, tile, lane), a.out - 1);
    copy_bulk(to + lane * pitch_of(a.in), static_cast<const T*>(a.weights) + row * a.weight_stride,
              static_cast<uint32_t>(a.in * 2), barrier);
  }

  __device__ Dense(const TileArgs& a, int32_t chunk)
      : first_(threadIdx.x % 32 / 4 * pitch_of(a.in) + chunk * 256 + threadIdx.x % 4 * 16),
        lower_at_(8 * pitch_of(a.in)) {}

  template <bool kHalf>
  __device__ __forceinline__ void multiply(uint32_t tile, Inputs inputs, int32_t chunks,
                                           float (&sums)[4]) const {
    uint32_t weights = tile + first_;
    float others[4] = {};  // every second product, so that two are under way
#pragma unroll 1
    for (int32_t c = 0; c < chunks; ++c) {
      uint4 upper[4], lower[4], x[4];
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        upper[s] = load_shared(weights + 64 * s);
        lower[s] = kHalf ? make_uint4(0, 0, 0, 0) : load_shared(weights + lower_at_ + 64 * s);
        x[s] = inputs.load(s);
      }
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        mma<T>(sums, upper[s].x, lower[s].x, upper[s].y, lower[s].y, x[s].x, x[s].y);
        mma<T>(others, upper[s].z, lower[s].z, upper[s].w, lower[s].w, x[s].z, x[s].w);
      }
      weights += 4 * 64;
      inputs.pass_chunk();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] += others[i];
  }

 private:
  uint32_t first_, lower_at_;
};

// Weights of which a block has more than half the shared memory go through a ring of half of it, so that
// those behind them have room at once: qkv of InternLM2-1.8B (127 KB a block), whose followers are attention
// and o. Not gate_up: down follows, which is as large. H200, one row of it: 1,182 -> 1,119 us a step.
bool better_in_half(const Queue& queue, const TileArgs& a) {
  const int64_t bytes = int64_t{a.out} * a.in * 2 / queue.num_sms;
  return a.pair == 0 && !a.y_is_float && bytes > kHalfOfShared && bytes <= queue.shared_bytes;
}

}  // namespace

bool linear_bulk(const Queue& queue, DType dtype, const TileArgs& args) {
  if (better_in_half(queue, args) && linear_stream(queue, dtype, args, kHalfOfShared)) return true;
  const bool whole = dtype == DType::kF16 ? launch_bulk<Dense<__half>>(queue, args)
                                          : launch_bulk<Dense<__nv_bfloat16>>(queue, args);
  return whole || linear_stream(queue, dtype, args, queue.shared_bytes);
}

}  // namespace whippet::cuda
