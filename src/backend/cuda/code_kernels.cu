// Products of few rows with weights in codes of 8 and 4 bits: their cells (cell.h) go to shared memory with
// the scales and minima that belong to them, and become fp16 or bf16 in registers without a branch or a
// conversion: codes are or-ed into the mantissa of a number whose last place counts ones, and that number is
// subtracted (exact). The tensor cores multiply them, a scale is applied to the fp32 sums of 32 columns, and
// a minimum to the sum of the inputs of those columns.
//   bulk.cuh     where a block has room for its share of the weight, which then is there before the inputs
//                where a scale belongs to a whole row of a cell, codes become numbers before the wait
//   wide_kernel  else: a warp has tiles of its own and a ring of cells
// More than 8 rows are done 8 at a time: the weight comes from the L2 from the second time on.
#include "backend/cuda/bulk.cuh"
#include "backend/cuda/cell.h"

namespace whippet::cuda {
namespace {

// A pair of codes in fp16 or bf16, exact. The last place of kMagic counts ones, codes fit below.
template <class T>
struct Magic {
  static constexpr uint32_t kBits = std::is_same_v<T, __half> ? 0x64006400 : 0x43004300;  // 1024, 128

  __device__ __forceinline__ static uint32_t subtract(uint32_t a, uint32_t b) {
    using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
    const Pair difference = __hsub2(*reinterpret_cast<Pair*>(&a), *reinterpret_cast<Pair*>(&b));
    return *reinterpret_cast<const uint32_t*>(&difference);
  }
  // Nibbles 0 and 4 of the word, less 8.
  __device__ __forceinline__ static uint32_t of_nibbles(uint32_t word) {
    return subtract((word & 0x000f000f) | kBits, kBits | 0x00080008);
  }
  // Bytes 0 and 2 of the word: the lower seven bits less 128 times the sign.
  __device__ __forceinline__ static uint32_t of_bytes(uint32_t word) {
    return subtract((word & 0x007f007f) | kBits, (word & 0x00800080) | kBits);
  }
};

// What a lane reads of a cell: 32 codes of one row, of four steps.
template <class T, LinearKind kind>
struct LaneCodes {
  static constexpr bool kWide = kind == LinearKind::kInt8;
  uint4 raw[kWide ? 2 : 1];

  __device__ __forceinline__ void load(uint32_t at) {
    raw[0] = load_shared(at);
    if (kWide) raw[kWide] = load_shared(at + 512);
  }
  // Eight columns of step s.
  __device__ __forceinline__ uint4 step(int s) const {
    if constexpr (kWide) {
      const uint4& both = raw[s / 2];
      const uint32_t low = s % 2 == 0 ? both.x : both.z, high = s % 2 == 0 ? both.y : both.w;
      return make_uint4(Magic<T>::of_bytes(low), Magic<T>::of_bytes(low >> 8), Magic<T>::of_bytes(high),
                        Magic<T>::of_bytes(high >> 8));
    } else {
      const uint32_t word = s == 0 ? raw[0].x : s == 1 ? raw[0].y : s == 2 ? raw[0].z : raw[0].w;
      return make_uint4(Magic<T>::of_nibbles(word), Magic<T>::of_nibbles(word >> 4),
                        Magic<T>::of_nibbles(word >> 8), Magic<T>::of_nibbles(word >> 12));
    }
  }
};

template <class F, int kCells>
class ReadyHalf;
template <class F>
class ReadyTiles;

// kMin: the weight has minima.
template <class T_, LinearKind kind, bool kMin>
class Codes {
 public:
  using T = T_;
  static constexpr bool kSums = kMin, kInCodes = true;
  static constexpr int kMostCells = 5;  // of a warp, that are numbers before the wait
  static constexpr int kBlocks = 3;     // on a multiprocessor, by registers

  __host__ __device__ static int32_t octet_bytes(const TileArgs& a) {
    return a.in / kCellColumns * a.cell_bytes;
  }
  __host__ __device__ static int32_t tile_bytes(const TileArgs& a, int32_t height) {
    return height / kCellRows * octet_bytes(a);
  }
  __device__ static int32_t octet_of(const TileArgs& a, int32_t row) {
    return min(row, a.out - 1) / kCellRows;
  }

  // Some lanes copy each octet, as many bytes each as makes whole cells.
  template <bool kHalf>
  __device__ static void start_tile(const TileArgs& a, int32_t tile, uint32_t to, uint32_t barrier) {
    constexpr int kLanes = kHalf ? 32 : 16;  // of an octet
    const int32_t lane = threadIdx.x % 32, cells = a.in / kCellColumns;
    if (lane == 0) expect_bytes(barrier, static_cast<uint32_t>(tile_bytes(a, kHalf ? 8 : 16)));
    __syncwarp();
    const int32_t begin = cells * (lane % kLanes) / kLanes, end = cells * (lane % kLanes + 1) / kLanes;
    if (begin == end) return;
    const int64_t octet = octet_of(a, weight_row<kHalf>(a, tile, lane / kLanes * 8));
    copy_bulk(to + lane / kLanes * octet_bytes(a) + begin * a.cell_bytes,
              static_cast<const char*>(a.weights) + (octet * cells + begin) * a.cell_bytes,
              static_cast<uint32_t>((end - begin) * a.cell_bytes), barrier);
  }

  __device__ Codes(const TileArgs& a, int32_t chunk)
      : first_(chunk * a.cell_bytes),
        cell_bytes_(a.cell_bytes),
        lower_at_(octet_bytes(a)),
        codes_at_(threadIdx.x % 32 * 16),
        scale_at_(code_bytes_of_cell(kind) + threadIdx.x % 32 / 4 * 4),
        min_at_(a.cell_groups * kCellRows * 4) {
#pragma unroll
    for (int s = 0; s < 4; ++s) group_at_[s] = (s * a.cell_groups >> 2) * kCellRows * 4;
  }

  template <bool kHalf>
  __device__ __forceinline__ void multiply(uint32_t tile, Inputs inputs, int32_t chunks,
                                           float (&sums)[4]) const {
    uint32_t cell = tile + first_;
#pragma unroll 1
    for (int32_t c = 0; c < chunks; ++c) {
      multiply_cell<kHalf>(cell, cell + lower_at_, inputs, sums);
      cell += cell_bytes_;
      inputs.pass_chunk();
    }
  }

  template <bool kHalf, int kCells>
  using Ready = std::conditional_t<kHalf, ReadyHalf<Codes, kCells>, ReadyTiles<Codes>>;
  // What Ready is made of: cell c of a warp's share, and of its rows the codes and the one scale of a lane's.
  __device__ __forceinline__ uint32_t upper_cell(uint32_t tile, int c) const {
    return tile + first_ + c * cell_bytes_;
  }
  __device__ __forceinline__ uint32_t lower_cell(uint32_t tile) const { return tile + first_ + lower_at_; }
  __device__ __forceinline__ uint32_t tile_bytes() const { return 2 * lower_at_; }
  __device__ __forceinline__ LaneCodes<T, kind> load_codes(uint32_t cell) const {
    LaneCodes<T, kind> codes;
    codes.load(cell + codes_at_);
    return codes;
  }
  // Place s of four where this lane's codes of the first cells lie.
  __device__ __forceinline__ uint32_t own_place(uint32_t tile, int s) const {
    return kind == LinearKind::kInt8 ? upper_cell(tile, s / 2) + codes_at_ + s % 2 * 512
                                     : upper_cell(tile, s) + codes_at_;
  }
  __device__ __forceinline__ float load_scale(uint32_t cell) const {
    return load_shared_float(cell + scale_at_);
  }

  // Adds to sums what comes of a cell of the upper eight rows and one of the lower.
  template <bool kHalf>
  __device__ __forceinline__ void multiply_cell(uint32_t upper_at, uint32_t lower_at, const Inputs& inputs,
                                                float (&sums)[4]) const {
    constexpr uint32_t kOnes = std::is_same_v<T, __half> ? 0x3c003c00 : 0x3f803f80;
    // Where a tile has no lower rows, ones in their place sum the inputs.
    constexpr uint32_t kEmpty = kMin ? kOnes : 0;
    LaneCodes<T, kind> upper_codes, lower_codes;
    upper_codes.load(upper_at + codes_at_);
    if (!kHalf) lower_codes.load(lower_at + codes_at_);
    uint4 x[4];
    Factors upper[4], lower[4];
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      x[s] = inputs.load(s);
      upper[s] = load_factors(upper_at, s);
      if (!kHalf) lower[s] = load_factors(lower_at, s);
    }
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const uint4 high = upper_codes.step(s);
      const uint4 low = kHalf ? make_uint4(kEmpty, kEmpty, kEmpty, kEmpty) : lower_codes.step(s);
      float c[4] = {};
      mma<T>(c, high.x, low.x, high.y, low.y, x[s].x, x[s].y);
      mma<T>(c, high.z, low.z, high.w, low.w, x[s].z, x[s].w);
      sums[0] = fmaf(upper[s].scale, c[0], sums[0]);
      sums[1] = fmaf(upper[s].scale, c[1], sums[1]);
      if (!kHalf) {
        sums[2] = fmaf(lower[s].scale, c[2], sums[2]);
        sums[3] = fmaf(lower[s].scale, c[3], sums[3]);
      }
      if (!kMin) continue;
      const float2 of_inputs =
          kHalf ? make_float2(c[2], c[3]) : load_shared_pair(inputs.sums_at + s * 32 + threadIdx.x % 4 * 8);
      sums[0] = fmaf(upper[s].min, of_inputs.x, sums[0]);
      sums[1] = fmaf(upper[s].min, of_inputs.y, sums[1]);
      if (kHalf) continue;
      sums[2] = fmaf(lower[s].min, of_inputs.x, sums[2]);
      sums[3] = fmaf(lower[s].min, of_inputs.y, sums[3]);
    }
  }

 private:
  struct Factors {
    float scale, min;
  };
  // Of this lane's row in step s; the minimum of codes that start from 0 where they are.
  __device__ __forceinline__ Factors load_factors(uint32_t cell, int s) const {
    const uint32_t at = cell + scale_at_ + group_at_[s];
    const float scale = load_shared_float(at);
    if (!kMin) return {scale, 0};
    const float min = load_shared_float(at + min_at_);
    return {scale, kind == LinearKind::kInt4 ? fmaf(8, scale, min) : min};
  }

  uint32_t first_, cell_bytes_, lower_at_, codes_at_, scale_at_, min_at_, group_at_[4];
};

// Up to kCells cells of the one tile of eight rows of a block: four in registers, a fifth where the codes
// were, of which each lane writes over those that it has read.
template <class F, int kCells>
class ReadyHalf {
 public:
  using T = typename F::T;
  __device__ __forceinline__ void prepare(const F& of, uint32_t tile, uint32_t, int32_t, uint32_t barrier,
                                          int32_t, int32_t chunks) {
    wait_barrier(barrier);
#pragma unroll
    for (int c = 0; c < kKept; ++c)
#pragma unroll
      for (int s = 0; s < 4; ++s) numbers_[c][s] = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int c = 0; c < kCells; ++c) {
      if (c >= chunks) break;
      const auto codes = of.load_codes(of.upper_cell(tile, c));
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        if (c < kKept) {
          numbers_[c][s] = codes.step(s);
        } else {
          store_shared(of.own_place(tile, s), codes.step(s));
        }
      }
    }
  }
  __device__ __forceinline__ void multiply(const F& of, uint32_t tile, const ChunkInputs<T>& x, int32_t,
                                           int32_t chunks, Sums<true>& to) const {
    const float scale = chunks > 0 ? of.load_scale(of.upper_cell(tile, 0)) : 0;
    float a[4] = {}, b[4] = {};
#pragma unroll
    for (int s = 0; s < 4; ++s) multiply_step(numbers_[0][s], x.x[s], a, b);
    const float sums[4] = {scale * (a[0] + b[2]), scale * (a[1] + b[3])};
    to.put(sums);
  }
  // Products of two cells by turns: none waits for the one ahead.
  __device__ __forceinline__ void multiply(const F& of, uint32_t tile, const Inputs& inputs, int32_t chunks,
                                           Sums<true>& to) const {
    float sums[4] = {};
#pragma unroll
    for (int first = 0; first < kCells; first += 2) {
      float a[2][4] = {}, b[2][4] = {};
#pragma unroll
      for (int s = 0; s < 4; ++s)
#pragma unroll
        for (int c = first; c < first + 2 && c < kCells; ++c) {
          const uint4 x = c < chunks ? inputs.load(4 * c + s) : make_uint4(0, 0, 0, 0);
          uint4 w = make_uint4(0, 0, 0, 0);
          if (c < kKept) w = numbers_[c][s];
          if (c >= kKept && c < chunks) w = load_shared(of.own_place(tile, s));
          multiply_step(w, x, a[c - first], b[c - first]);
        }
#pragma unroll
      for (int c = first; c < first + 2 && c < kCells; ++c) {
        const float scale = c < chunks ? of.load_scale(of.upper_cell(tile, c)) : 0;
        sums[0] = fmaf(scale, a[c - first][0] + b[c - first][2], sums[0]);
        sums[1] = fmaf(scale, a[c - first][1] + b[c - first][3], sums[1]);
      }
    }
    to.put(sums);
  }

 private:
  static constexpr int kKept = kCells < 4 ? kCells : 4;
  static_assert(kCells <= kKept + 1);
  // The last four of eight columns stand where a tile has its lower rows, which takes no registers for zeros:
  // of the products with the first four inputs the upper rows count, of those with the last the lower.
  __device__ __forceinline__ static void multiply_step(uint4 w, uint4 x, float (&a)[4], float (&b)[4]) {
    mma<T>(a, w.x, w.z, w.y, w.w, x.x, x.y);
    mma<T>(b, w.x, w.z, w.y, w.w, x.z, x.w);
  }

  uint4 numbers_[kKept][4];
};

// A warp's chunk of all tiles of sixteen rows of a block: of the first in registers, of the others in shared
// memory, where each lane reads what it has written.
template <class F>
class ReadyTiles {
 public:
  using T = typename F::T;
  // place: of this warp's numbers of the first tile that has no registers; pitch: from a tile to the next.
  __device__ __forceinline__ void prepare(const F& of, uint32_t tiles, uint32_t place, int32_t pitch,
                                          uint32_t barriers, int32_t count, int32_t chunks) {
    place_ = place + threadIdx.x % 32 * 16;
    pitch_ = pitch;
    if (chunks == 0) return;
#pragma unroll
    for (int t = 0; t < kRegisterTiles; ++t) {
      if (t >= count) break;
      wait_barrier(barriers + 8 * t);
      unpack(of, tiles + t * of.tile_bytes(), numbers_[t]);
    }
    uint32_t to = place_;
#pragma unroll 1
    for (int32_t t = kRegisterTiles; t < count; ++t, to += pitch_) {
      uint4 numbers[8];
      wait_barrier(barriers + 8 * t);
      unpack(of, tiles + t * of.tile_bytes(), numbers);
#pragma unroll
      for (int i = 0; i < 8; ++i) store_shared(to + i * 512, numbers[i]);
    }
  }
  __device__ __forceinline__ void multiply(const F& of, uint32_t tiles, const ChunkInputs<T>& x,
                                           int32_t count, int32_t chunks, Sums<false>& to) const {
    if (chunks == 0) {
      const float none[4] = {};
      for (int32_t t = 0; t < count; ++t) to.put(none);
      return;
    }
#pragma unroll
    for (int t = 0; t < kRegisterTiles; ++t) {
      if (t >= count) break;
      multiply_tile(of, tiles + t * of.tile_bytes(), numbers_[t], x, to);
    }
    uint32_t from = place_;
#pragma unroll 1
    for (int32_t t = kRegisterTiles; t < count; ++t, from += pitch_) {
      uint4 numbers[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) numbers[i] = load_shared(from + i * 512);
      multiply_tile(of, tiles + t * of.tile_bytes(), numbers, x, to);
    }
  }

 private:
  // What a product takes at once is next to each other: the first four columns of each step, the last four.
  __device__ __forceinline__ static void unpack(const F& of, uint32_t tile, uint4 (&numbers)[8]) {
    const auto upper = of.load_codes(of.upper_cell(tile, 0)), lower = of.load_codes(of.lower_cell(tile));
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const uint4 high = upper.step(s), low = lower.step(s);
      numbers[2 * s] = make_uint4(high.x, low.x, high.y, low.y);
      numbers[2 * s + 1] = make_uint4(high.z, low.z, high.w, low.w);
    }
  }
  __device__ __forceinline__ static void multiply_tile(const F& of, uint32_t tile, const uint4 (&numbers)[8],
                                                       const ChunkInputs<T>& x, Sums<false>& to) {
    const float high = of.load_scale(of.upper_cell(tile, 0)), low = of.load_scale(of.lower_cell(tile));
    float a[4] = {}, b[4] = {};
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const uint4 &first = numbers[2 * s], &second = numbers[2 * s + 1];
      mma<T>(a, first.x, first.y, first.z, first.w, x.x[s].x, x.x[s].y);
      mma<T>(b, second.x, second.y, second.z, second.w, x.x[s].z, x.x[s].w);
    }
    const float sums[4] = {high * (a[0] + b[0]), high * (a[1] + b[1]), low * (a[2] + b[2]),
                           low * (a[3] + b[3])};
    to.put(sums);
  }

  uint4 numbers_[kRegisterTiles][8];
  uint32_t place_;
  int32_t pitch_;
};

constexpr int kMostSlots = 16;  // of a warp's ring
constexpr int32_t kWideBlocks =
    2;  // on a multiprocessor, where there is room: 16 warps hide each other's latency
constexpr int32_t kWideRing = 96 << 10;

// Where things lie in a block of wide_kernel.
template <class F>
struct WideLayout {
  int32_t inputs, input_sums, size;
  __host__ __device__ WideLayout(const TileArgs& a, int32_t slots) {
    inputs = kWarps * slots * 2 * a.cell_bytes;
    input_sums = inputs + a.rows * a.in * 2;
    size = input_sums + (F::kSums ? a.in : 0);
  }
};

// A warp's ring of slots of two cells, the upper and the lower eight rows of a tile.
template <class F>
class Ring {
 public:
  __device__ Ring(const TileArgs& a, int32_t slots, uint32_t at, uint32_t barriers)
      : a_(a), slots_(slots), at_(at), barriers_(barriers), cells_(a.in / kCellColumns) {
    tile_ = blockIdx.x * kWarps + threadIdx.x / 32;
    if (threadIdx.x % 32 < slots) open_barrier(barriers + 8 * (threadIdx.x % 32));
    __syncwarp();
    for (int32_t s = 0; s < slots; ++s) copy_next();
  }
  // Waits for the next cells; where they lie.
  __device__ __forceinline__ uint32_t take() {
    wait_barrier(barriers_ + 8 * read_, parity_);
    return at_ + read_ * 2 * a_.cell_bytes;
  }
  // The last that were taken have been read by this lane.
  __device__ __forceinline__ void give_back() {
    if (++read_ == slots_) read_ = 0, parity_ ^= 1;
    __syncwarp();
    copy_next();
  }

 private:
  __device__ __forceinline__ void copy_next() {
    if (tile_ >= a_.tiles) return;
    const int32_t lane = threadIdx.x % 32;
    const uint32_t barrier = barriers_ + 8 * write_;
    if (lane == 0) expect_bytes(barrier, static_cast<uint32_t>(2 * a_.cell_bytes));
    __syncwarp();
    if (lane < 2) {
      const int64_t octet = F::octet_of(a_, weight_row<false>(a_, tile_, lane * 8));
      copy_bulk(at_ + (write_ * 2 + lane) * a_.cell_bytes,
                static_cast<const char*>(a_.weights) + (octet * cells_ + cell_) * a_.cell_bytes,
                static_cast<uint32_t>(a_.cell_bytes), barrier);
    }
    if (++write_ == slots_) write_ = 0;
    if (++cell_ < cells_) return;
    cell_ = 0;
    tile_ += gridDim.x * kWarps;
  }

  const TileArgs& a_;
  int32_t slots_;
  uint32_t at_, barriers_;
  int32_t cells_, tile_, cell_ = 0, write_ = 0, read_ = 0;
  uint32_t parity_ = 0;
};

// Copies x to shared memory as Inputs reads it, times the norm's weights where there is a norm.
template <class T>
__device__ void stage_all(const TileArgs& a, uint32_t inputs, float (&squares)[kRows][kWarps]) {
  const auto at = [&](int32_t r, int32_t i) { return inputs + (i / 4 * a.rows + r) * 64 + i % 4 * 16; };
  for (int32_t r = 0; r < a.rows; ++r)
    for (int32_t i = threadIdx.x; i < a.in / 8; i += kThreads)
      copy_sixteen(at(r, i), static_cast<const T*>(a.x) + r * a.x_stride + 8 * i);
  commit_copies();
  wait_copies<0>();
  for (int32_t r = 0; r < a.rows && a.norm != nullptr; ++r) {
    float sum = 0;
    for (int32_t i = threadIdx.x; i < a.in / 8; i += kThreads)
      sum += scale_inputs<T>(at(r, i), 0, 1, a.norm + 8 * i);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) squares[r][threadIdx.x / 32] = sum;
  }
  __syncthreads();
}

template <class T>
__device__ __forceinline__ void emit(const TileArgs& a, int32_t tile, int32_t row, float upper, float lower,
                                     const float (&squares)[kRows][kWarps]) {
  if (row >= a.rows) return;
  float factor = 1;
  if (a.norm != nullptr) {
    float square = 0;
    for (int w = 0; w < kWarps; ++w) square += squares[row][w];
    factor = rsqrtf(__fdividef(square, static_cast<float>(a.in)) + a.eps);
  }
  Output<T, false> output(a, tile, 0, row, static_cast<int32_t>(threadIdx.x % 32 / 4));
  if (!a.y_is_float) {
    output.load_residual(a);
    return output.write(a, upper * factor, lower * factor);
  }
  float* y = static_cast<float*>(a.y) + row * a.y_stride;
  if (output.upper < a.out) y[output.upper] = upper * factor + output.bias[0];
  if (output.lower < a.out) y[output.lower] = lower * factor + output.bias[1];
}

template <class F>
__global__ void __launch_bounds__(kThreads, kWideBlocks) wide_kernel(TileArgs a, int32_t slots) {
  using T = typename F::T;
  __shared__ uint64_t arrived[kWarps * kMostSlots];
  __shared__ float squares[kRows][kWarps];
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, part = lane % 4;
  const WideLayout<F> at(a, slots);
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_shared));
  const auto barriers = static_cast<uint32_t>(__cvta_generic_to_shared(arrived));
  Ring<F> ring(a, slots, shared + warp * slots * 2 * a.cell_bytes, barriers + warp * kMostSlots * 8);
  let_next_start();
  const F weights(a, 0);
  Inputs inputs;
  inputs.step_bytes = a.rows * 64;
  inputs.has_row = group < a.rows;
  inputs.at = shared + at.inputs + group * 64 + part * 16;
  inputs.sums_at = shared + at.input_sums;

  wait_for_inputs();
  stage_all<T>(a, shared + at.inputs, squares);
  const int32_t cells = a.in / kCellColumns;
  if (F::kSums) {
    const int32_t begin = cells * 4 * warp / kWarps, end = cells * 4 * (warp + 1) / kWarps;
    Inputs share = inputs;
    share.at += begin * share.step_bytes;
    share.sums_at += begin * 32;
    sum_inputs<T>(share, end - begin);
    __syncthreads();
  }
  for (int32_t tile = blockIdx.x * kWarps + warp; tile < a.tiles; tile += gridDim.x * kWarps) {
    float sums[4] = {};
    Inputs x = inputs;
#pragma unroll 1
    for (int32_t c = 0; c < cells; ++c) {
      const uint32_t cell = ring.take();
      weights.template multiply_cell<false>(cell, cell + a.cell_bytes, x, sums);
      ring.give_back();
      x.pass_chunk();
    }
    emit<T>(a, tile, part * 2, sums[0], sums[2], squares);
    emit<T>(a, tile, part * 2 + 1, sums[1], sums[3], squares);
  }
}

// Slots of a warp's ring beside the inputs; fewer than 2: there is no room.
template <class F>
int32_t wide_slots(const Queue& queue, const TileArgs& args) {
  const int32_t room = std::min(queue.shared_bytes - 2048 - WideLayout<F>(args, 0).size, kWideRing);
  return std::min(kMostSlots, room / (kWarps * 2 * args.cell_bytes));
}

template <class F>
bool launch_wide(const Queue& queue, TileArgs args) {
  const int32_t slots = wide_slots<F>(queue, args);
  if (slots < 2) return false;
  args.tiles = ceil_div(args.pair > 0 ? args.pair : args.out, args.pair > 0 ? 8 : 16);
  const int32_t blocks = std::min(ceil_div(args.tiles, kWarps), kWideBlocks * queue.num_sms);
  const int32_t shared = WideLayout<F>(args, slots).size;
  prefer_shared(wide_kernel<F>, shared, "linear");
  launch(queue, "linear", wide_kernel<F>, dim3(static_cast<unsigned>(blocks)), kThreads,
         static_cast<size_t>(shared), args, slots);
  return true;
}

// Rows [first, first + rows) of the arguments.
template <class T>
TileArgs some_rows(TileArgs args, int32_t first, int32_t rows) {
  const auto pass = [&](auto*& data, int64_t stride, size_t width) {
    if (data == nullptr) return;
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<std::decay_t<decltype(data)>>>,
                                    const char, char>;
    data = static_cast<Byte*>(data) + first * stride * static_cast<int64_t>(width);
  };
  pass(args.x, args.x_stride, sizeof(T));
  pass(args.y, args.y_stride, args.y_is_float ? sizeof(float) : sizeof(T));
  pass(args.residual, args.residual_stride, sizeof(T));
  pass(args.gated, args.gated_stride, sizeof(T));
  args.rows = rows;
  return args;
}

// As many rows at a time as a block has room for beside its weights.
template <class F>
void launch_passes(const Queue& queue, const TileArgs& args) {
  for (int32_t first = 0; first < args.rows;) {
    const int32_t most = std::min(kRows, args.rows - first);
    int32_t rows = most;
    while (rows > 0 && !launch_bulk<F>(queue, some_rows<typename F::T>(args, first, rows))) rows /= 2;
    if (rows == 0) {
      rows = most;
      while (rows > 0 && !launch_wide<F>(queue, some_rows<typename F::T>(args, first, rows))) rows /= 2;
    }
    WH_CHECK(rows > 0, "no kernel for {} inputs in codes", args.in);
    first += rows;
  }
}

template <class T>
void launch_type(const Queue& queue, const TileArgs& args) {
  if (args.kind == LinearKind::kInt8) {
    if (args.has_min) return launch_passes<Codes<T, LinearKind::kInt8, true>>(queue, args);
    return launch_passes<Codes<T, LinearKind::kInt8, false>>(queue, args);
  }
  if (args.has_min) return launch_passes<Codes<T, LinearKind::kInt4, true>>(queue, args);
  launch_passes<Codes<T, LinearKind::kInt4, false>>(queue, args);
}

}  // namespace

bool codes_fit(const Queue& queue, ConstMat x, const WeightView& w) {
  if (w.kind != LinearKind::kInt8 && w.kind != LinearKind::kInt4) return false;
  if (x.dtype == DType::kF32 || reinterpret_cast<uintptr_t>(x.data) % 16 != 0 || x.stride % 8 != 0)
    return false;
  if (!queue.early_start || x.cols != w.columns || x.cols % kCellColumns != 0 || w.group < 32) return false;
  TileArgs one;
  one.rows = 1;
  one.in = x.cols;
  one.cell_bytes = w.cell_bytes;
  return wide_slots<Codes<__half, LinearKind::kInt4, true>>(queue, one) >= 2;
}

void linear_codes(const Queue& queue, DType dtype, const TileArgs& args) {
  WH_CHECK(args.normed == nullptr, "normed rows are not kept");
  dtype == DType::kF16 ? launch_type<__half>(queue, args) : launch_type<__nv_bfloat16>(queue, args);
}

}  // namespace whippet::cuda
