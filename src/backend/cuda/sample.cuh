// One row's distribution inside of one block: what is kept by min_p, top_k and top_p, and a draw from it.
// Used by sample_kernels.cu and sample_top_kernels.cu. Logits are compared by their bits, mapped so that
// larger floats are larger integers.
#pragma once

#include <limits>

#include "backend/cuda/launch.cuh"

namespace whippet::cuda {

constexpr int kSampleThreads = 1024;
constexpr int kSampleWarps = kSampleThreads / 32;
constexpr int kCandidates = 4096;
constexpr float kBanned = -std::numeric_limits<float>::infinity();

// A larger finite float has a larger number, and equal ones (0 and -0) the same; 0 for none.
__device__ __forceinline__ uint32_t ordered(float x) {
  const uint32_t bits = __float_as_uint(x + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float value_of(uint32_t number) {
  return __uint_as_float(number & 0x80000000u ? number & 0x7fffffffu : ~number);
}
// By falling logit, the lower id first; 0 for a logit that is not finite.
__device__ __forceinline__ unsigned long long ranked(float x, int32_t id) {
  return isfinite(x) ? static_cast<unsigned long long>(ordered(x)) << 32 | (0xffffffffu - id) : 0;
}
__device__ __forceinline__ int32_t ranked_id(unsigned long long key) {
  return static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(key));
}

template <int kThreads>
__device__ unsigned long long block_best(unsigned long long best, unsigned long long* shared) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) best = max(best, __shfl_xor_sync(~0u, best, offset));
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = best;
  __syncthreads();
  best = threadIdx.x % 32 < kThreads / 32 ? shared[threadIdx.x % 32] : 0;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) best = max(best, __shfl_xor_sync(~0u, best, offset));
  return best;
}

struct Logits {
  float* x = nullptr;
  int32_t vocab = 0;
  const uint32_t* mask = nullptr;
  float largest = 0, temperature = 1, min_p = 0;

  __device__ float at(int32_t i) const {
    return mask != nullptr && (mask[i / 32] >> (i % 32) & 1) == 0 ? kBanned : x[i];
  }
  // How far below the largest, in temperatures; 0 or less.
  __device__ float depth(float value) const { return (value - largest) / temperature; }
  // Relative to the largest, which weighs 1.
  __device__ float weight(float value) const { return expf(depth(value)); }
};

struct Sum {
  double mass = 0;
  int32_t count = 0;
};

// Counts and sums of weights by bin, the first bin has the largest logits. Sums are integers, so that they do
// not depend on the order: multiples of 2^-43 in two words.
constexpr int kBins = 2048;
struct Histogram {
  int32_t count[kBins];
  uint32_t low[kBins], high[kBins];
};

struct SampleShared {
  unsigned long long best[kSampleWarps];
  double mass[kSampleWarps];
  int32_t count[kSampleWarps];
  Histogram bins;
  float candidates[kCandidates];
  int32_t num_candidates;
  uint32_t lowest, highest;  // numbers among them
  int32_t bin;
  double mass_above, mass_of_all;
  int32_t count_above, count_of_all;
  int32_t token, warp, ties_before;
  double before;
};

__device__ inline Sum block_total(Sum own, SampleShared& shared) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    own.mass += __shfl_xor_sync(~0u, own.mass, offset);
    own.count += __shfl_xor_sync(~0u, own.count, offset);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    shared.mass[threadIdx.x / 32] = own.mass;
    shared.count[threadIdx.x / 32] = own.count;
  }
  __syncthreads();
  own = {shared.mass[threadIdx.x % 32], shared.count[threadIdx.x % 32]};
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    own.mass += __shfl_xor_sync(~0u, own.mass, offset);
    own.count += __shfl_xor_sync(~0u, own.count, offset);
  }
  return own;
}

// The best one below `limit`.
__device__ inline unsigned long long best_of(const Logits& logits, unsigned long long limit,
                                             SampleShared& shared) {
  unsigned long long best = 0;
  for (int32_t i = threadIdx.x; i < logits.vocab; i += kSampleThreads) {
    const unsigned long long key = ranked(logits.at(i), i);
    if (key < limit) best = max(best, key);
  }
  return block_best<kSampleThreads>(best, shared.best);
}

// How many of get(0) ... get(n - 1) min_p keeps whose number is `from` or more, and what they weigh.
template <class Get>
__device__ Sum measure(const Logits& logits, int32_t n, const Get& get, uint32_t from, SampleShared& shared) {
  Sum own;
  for (int32_t i = threadIdx.x; i < n; i += kSampleThreads) {
    const float value = get(i);
    if (!isfinite(value) || ordered(value) < from) continue;
    const float weight = logits.weight(value);
    if (weight < logits.min_p) continue;
    own.mass += weight;
    ++own.count;
  }
  return block_total(own, shared);
}

// What is kept: of those that min_p keeps the ones above `threshold`, and of those that equal it the `ties`
// of the lowest ids.
struct Kept {
  uint32_t threshold = 0;
  int32_t ties = 0;
};

// The largest number in [low, high] from which on `reached(sum)` holds; it holds from low on.
template <class Get, class Reached>
__device__ uint32_t bisect(const Logits& logits, int32_t n, const Get& get, uint32_t low, uint32_t high,
                           const Reached& reached, SampleShared& shared) {
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    if (reached(measure(logits, n, get, middle, shared))) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// A slice of the row by falling logit: bin `bin` of all (by how deep they lie), or a range of numbers cut
// into bins of 2^shift.
struct Slice {
  bool by_depth = true;
  uint32_t low = 0, high = ~0u;
  int32_t shift = 0;

  // -1: not in the slice.
  __device__ int32_t bin_of(const Logits& logits, float value) const {
    if (by_depth) return min(kBins - 1, static_cast<int32_t>(logits.depth(value) * -64.0f));
    const uint32_t number = ordered(value);
    return number >= low && number <= high ? static_cast<int32_t>((high - number) >> shift) : -1;
  }
};
__device__ inline Slice slice_of(uint32_t low, uint32_t high) {
  Slice slice{false, low, high};
  while ((high - low) >> slice.shift >= kBins) ++slice.shift;
  return slice;
}

constexpr float kMassUnits = 0x1p43f;
__device__ __forceinline__ void add_mass(Histogram& bins, int32_t bin, int32_t count,
                                         unsigned long long units) {
  const auto low = static_cast<uint32_t>(units);
  atomicAdd(&bins.count[bin], count);
  const uint32_t before = atomicAdd(&bins.low[bin], low);
  const uint32_t high = static_cast<uint32_t>(units >> 32) + (before + low < before ? 1 : 0);
  if (high > 0) atomicAdd(&bins.high[bin], high);
}
__device__ __forceinline__ double mass_in(const Histogram& bins, int32_t bin) {
  const auto units = static_cast<unsigned long long>(bins.high[bin]) << 32 | bins.low[bin];
  return static_cast<double>(units) * 0x1p-43;
}

// Fills the histogram with what min_p keeps of the slice.
__device__ inline void fill_bins(const Logits& logits, const Slice& slice, SampleShared& shared) {
  __syncthreads();
  for (int32_t i = threadIdx.x; i < kBins; i += kSampleThreads)
    shared.bins.count[i] = 0, shared.bins.low[i] = 0, shared.bins.high[i] = 0;
  __syncthreads();
  for (int32_t base = 0; base < logits.vocab; base += kSampleThreads) {
    const int32_t i = base + static_cast<int32_t>(threadIdx.x);
    const float value = i < logits.vocab ? logits.at(i) : kBanned;
    int32_t bin = isfinite(value) ? slice.bin_of(logits, value) : -1;
    const float weight = bin >= 0 ? logits.weight(value) : 0;
    if (weight < logits.min_p) bin = -1;
    unsigned long long units = bin >= 0 ? __float2ull_rn(weight * kMassUnits) : 0;
    const unsigned here = __ballot_sync(~0u, bin >= 0);
    if (here == 0) continue;
    const int32_t leader = __ffs(here) - 1, common = __shfl_sync(~0u, bin, leader);
    if (__all_sync(~0u, bin < 0 || bin == common)) {  // as where all logits are equal
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) units += __shfl_xor_sync(~0u, units, offset);
      if (static_cast<int32_t>(threadIdx.x % 32) == leader)
        add_mass(shared.bins, common, __popc(here), units);
    } else if (bin >= 0) {
      add_mass(shared.bins, bin, 1, units);
    }
  }
  __syncthreads();
}

// The first bin with which on top of `above` reached(sum, sum of all) holds, into shared.bin (-1: none); what
// lies above it and all that there is.
template <class Reached>
__device__ void find_bin(Sum above, const Reached& reached, SampleShared& shared) {
  constexpr int kEach = kBins / 32;
  if (threadIdx.x < 32) {
    const int32_t lane = threadIdx.x;
    Sum own;
    for (int32_t i = lane * kEach; i < (lane + 1) * kEach; ++i)
      own.mass += mass_in(shared.bins, i), own.count += shared.bins.count[i];
    Sum running = own;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const double mass = __shfl_up_sync(~0u, running.mass, offset);
      const int32_t count = __shfl_up_sync(~0u, running.count, offset);
      if (lane >= offset) running.mass += mass, running.count += count;
    }
    running.mass += above.mass, running.count += above.count;
    const Sum all{__shfl_sync(~0u, running.mass, 31), __shfl_sync(~0u, running.count, 31)};
    const unsigned there = __ballot_sync(~0u, own.count > 0 && reached(running, all));
    if (lane == 0) shared.bin = -1, shared.mass_of_all = all.mass, shared.count_of_all = all.count;
    __syncwarp();
    if (there != 0 && lane == __ffs(there) - 1) {
      Sum sum{running.mass - own.mass, running.count - own.count};
      int32_t last = -1;
      Sum before_last;
      for (int32_t i = lane * kEach; i < (lane + 1) * kEach; ++i) {
        if (shared.bins.count[i] == 0) continue;
        last = i, before_last = sum;
        sum.mass += mass_in(shared.bins, i), sum.count += shared.bins.count[i];
        if (reached(sum, all)) break;
      }
      shared.bin = last, shared.mass_above = before_last.mass, shared.count_above = before_last.count;
    }
  }
  __syncthreads();
}

// Copies what min_p keeps of a bin into the candidates (as much as has room) and finds its ends.
__device__ inline int32_t collect(const Logits& logits, const Slice& slice, int32_t bin,
                                  SampleShared& shared) {
  if (threadIdx.x == 0) shared.num_candidates = 0, shared.lowest = ~0u, shared.highest = 0;
  __syncthreads();
  uint32_t lowest = ~0u, highest = 0;
  for (int32_t i = threadIdx.x; i < logits.vocab; i += kSampleThreads) {
    const float value = logits.at(i);
    if (!isfinite(value) || slice.bin_of(logits, value) != bin || logits.weight(value) < logits.min_p)
      continue;
    lowest = min(lowest, ordered(value)), highest = max(highest, ordered(value));
    const int32_t place = atomicAdd(&shared.num_candidates, 1);
    if (place < kCandidates) shared.candidates[place] = value;
  }
  lowest = __reduce_min_sync(~0u, lowest), highest = __reduce_max_sync(~0u, highest);
  if (threadIdx.x % 32 == 0 && lowest <= highest) {
    atomicMin(&shared.lowest, lowest);
    atomicMax(&shared.highest, highest);
  }
  __syncthreads();
  return shared.num_candidates;
}

// Where by falling logit reached(sum, sum of all) comes to hold: the number, what lies above it, how many
// equal it, and all that there is.
struct Border {
  bool found = false;
  uint32_t number = 0;
  int32_t ties = 0;
  Sum above, all;
};
template <class Reached>
__device__ Border find_border(const Logits& logits, const Reached& reached, SampleShared& shared) {
  Border border;
  Slice slice;
  for (bool is_first = true;; is_first = false) {
    fill_bins(logits, slice, shared);
    const Sum all = border.all;
    find_bin(
        border.above, [&](Sum sum, Sum here) { return reached(sum, is_first ? here : all); }, shared);
    if (is_first) border.all = {shared.mass_of_all, shared.count_of_all};
    if (shared.bin < 0) return border;
    border.above = {shared.mass_above, shared.count_above};
    const int32_t n = collect(logits, slice, shared.bin, shared);
    border.found = true;
    border.number = shared.lowest;
    border.ties = n;
    if (shared.lowest == shared.highest) return border;
    if (n <= kCandidates) break;
    slice = slice_of(shared.lowest, shared.highest);
    __syncthreads();
  }
  const auto candidate = [&](int32_t i) { return shared.candidates[i]; };
  const auto with_above = [&](Sum sum) {
    return Sum{border.above.mass + sum.mass, border.above.count + sum.count};
  };
  const int32_t n = border.ties;
  border.number = bisect(
      logits, n, candidate, shared.lowest, shared.highest,
      [&](Sum sum) { return reached(with_above(sum), border.all); }, shared);
  const Sum from = measure(logits, n, candidate, border.number, shared);
  const Sum beyond = measure(logits, n, candidate, border.number + 1, shared);
  border.ties = from.count - beyond.count;
  border.above = with_above(beyond);
  return border;
}

// top_k, then top_p, of what min_p keeps.
__device__ inline Kept keep(const Logits& logits, const SampleRow& row, SampleShared& shared) {
  Kept kept{0, 0};
  double total = -1;  // of what top_k keeps, where it drops any
  if (row.top_k > 0) {
    const Border border = find_border(
        logits, [&](Sum sum, Sum) { return sum.count >= row.top_k; }, shared);
    if (border.found && border.above.count + border.ties >= row.top_k) {
      kept = {border.number, row.top_k - border.above.count};
      total = border.above.mass + kept.ties * static_cast<double>(logits.weight(value_of(border.number)));
    }
  }
  if (row.top_p >= 1) return kept;
  const double top_p = row.top_p;
  const Border border = find_border(
      logits, [&](Sum sum, Sum all) { return sum.mass >= top_p * (total < 0 ? all.mass : total); }, shared);
  if (!border.found || border.number < kept.threshold) return kept;
  const double wanted = top_p * (total < 0 ? border.all.mass : total);
  const double each = logits.weight(value_of(border.number));
  const double needed = each > 0 ? ceil((wanted - border.above.mass) / each) : 1.0;
  const double least = border.above.count == 0 ? 1.0 : 0.0;
  const int32_t most = border.number == kept.threshold ? kept.ties : border.ties;
  return {border.number, static_cast<int32_t>(fmin(fmax(needed, least), static_cast<double>(most)))};
}

// Weight of an id that is above the threshold; is_tie where it equals it.
__device__ __forceinline__ float weight_of(const Logits& logits, const Kept& kept, int32_t i, bool& is_tie) {
  is_tie = false;
  if (i >= logits.vocab) return 0;
  const float value = logits.at(i);
  if (!isfinite(value) || ordered(value) < kept.threshold) return 0;
  const float weight = logits.weight(value);
  if (weight < logits.min_p) return 0;
  is_tie = ordered(value) == kept.threshold;
  return weight;
}

// The warp whose ids the draw falls among: each warp has a piece of them, in order. `place` is in [0, 1) of
// all of them where `relative`, else the sum that must be exceeded; `ties` come before them.
__device__ inline void find_warp(const Kept& kept, float tie_weight, double place, bool relative,
                                 int32_t ties_before, SampleShared& shared) {
  const auto weigh = [&](int32_t w, int32_t ties) {
    const int32_t own = min(shared.count[w], max(kept.ties - ties, 0));
    return own > 0 ? shared.mass[w] + own * static_cast<double>(tie_weight) : shared.mass[w];
  };
  double total = 0;
  int32_t ties = ties_before;
  for (int32_t w = 0; relative && w < kSampleWarps; ++w) {
    total += weigh(w, ties);
    ties += shared.count[w];
  }
  const double wanted = relative ? place * total : place;
  double sum = 0;
  ties = ties_before;
  shared.warp = -1;
  for (int32_t w = 0; w < kSampleWarps; ++w) {
    const double own = weigh(w, ties);
    if (own > 0) {
      shared.warp = w;
      shared.before = wanted - sum;  // what the piece's own sum must exceed
      shared.ties_before = ties;
      if (sum + own > wanted) break;
    }
    sum += own;
    ties += shared.count[w];
  }
}

// The first id of [begin, end) at which the sum of the kept weights exceeds shared.before. One warp.
__device__ inline int32_t draw_among(const Logits& logits, const Kept& kept, int32_t begin, int32_t end,
                                     const SampleShared& shared) {
  const int32_t lane = threadIdx.x % 32;
  double sum = 0;
  int32_t ties = shared.ties_before, last = -1;
  for (int32_t base = begin; base < end; base += 32) {
    bool is_tie = false;
    float weight = base + lane < end ? weight_of(logits, kept, base + lane, is_tie) : 0;
    const unsigned tied = __ballot_sync(~0u, is_tie);
    if (is_tie && ties + __popc(tied & ((1u << lane) - 1)) >= kept.ties) weight = 0;
    ties += __popc(tied);
    double running = weight;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const double other = __shfl_up_sync(~0u, running, offset);
      if (lane >= offset) running += other;
    }
    const unsigned beyond = __ballot_sync(~0u, weight > 0 && sum + running > shared.before);
    if (beyond != 0) return base + __ffs(beyond) - 1;
    const unsigned any = __ballot_sync(~0u, weight > 0);
    if (any != 0) last = base + 31 - __clz(any);
    sum += __shfl_sync(~0u, running, 31);
  }
  return last;
}

// Weighs 32 pieces of [begin, end), one a warp, and leaves in `shared` the one that the draw falls on.
__device__ inline void weigh_pieces(const Logits& logits, const Kept& kept, int32_t begin, int32_t end,
                                    int32_t piece, SampleShared& shared) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  begin += warp * piece;
  end = min(end, begin + piece);
  Sum own;
  for (int32_t i = begin + lane; i < end; i += 32) {
    bool is_tie;
    const float weight = weight_of(logits, kept, i, is_tie);
    if (!is_tie) own.mass += weight;
    own.count += is_tie;
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    own.mass += __shfl_xor_sync(~0u, own.mass, offset);
    own.count += __shfl_xor_sync(~0u, own.count, offset);
  }
  __syncthreads();
  if (lane == 0) shared.mass[warp] = own.mass, shared.count[warp] = own.count;
  __syncthreads();
}

// The token that `uniform` of [0, 1) falls on: kept ids in order, each as wide as its weight. The row in 32
// pieces, that of the draw in 32 again, and of those one id by id.
__device__ inline int32_t draw(const Logits& logits, Kept kept, double uniform, SampleShared& shared) {
  int32_t begin = 0, end = logits.vocab;
  for (const bool is_row : {true, false}) {
    const int32_t piece = (end - begin + kSampleThreads - 1) / kSampleThreads * 32;
    weigh_pieces(logits, kept, begin, end, piece, shared);
    if (threadIdx.x == 0)
      find_warp(kept, logits.weight(value_of(kept.threshold)), is_row ? uniform : shared.before, is_row,
                is_row ? 0 : shared.ties_before, shared);
    __syncthreads();
    const int32_t at = max(shared.warp, 0);
    begin += at * piece;
    end = min(end, begin + piece);
  }
  if (threadIdx.x < 32) {
    const int32_t token = draw_among(logits, kept, begin, end, shared);
    if (threadIdx.x == 0) shared.token = token;
  }
  __syncthreads();
  return shared.token;
}

}  // namespace whippet::cuda
