// One row's distribution inside of one block: what is kept by min_p, top_k and top_p, and a draw from it.
// Used by sample_kernels.cu. Logits are compared by their bits, mapped so that larger floats are larger
// integers.
#pragma once

#include <limits>

#include "backend/cuda/launch.cuh"

namespace whippet::cuda {

constexpr int kSampleThreads = 1024;
constexpr int kSampleWarps = kSampleThreads / 32;
constexpr int kCandidates = 4096;
constexpr float kBanned = -std::numeric_limits<float>::infinity();

// A larger finite float has a larger number; 0 for none.
__device__ __forceinline__ uint32_t ordered(float x) {
  const uint32_t bits = __float_as_uint(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
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
  // Relative to the largest, which weighs 1.
  __device__ float weight(float value) const { return expf((value - largest) / temperature); }
};

struct Sum {
  double mass = 0;
  int32_t count = 0;
};

struct SampleShared {
  unsigned long long best[kSampleWarps];
  double mass[kSampleWarps];
  int32_t count[kSampleWarps];
  float candidates[kCandidates];
  int32_t num_candidates;
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

__device__ __forceinline__ float value_of(uint32_t number) {
  return __uint_as_float(number & 0x80000000u ? number & 0x7fffffffu : ~number);
}

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

// top_k, then top_p, among get(0) ... get(n - 1), which hold everything that can be kept. `total`: of all the
// row that min_p keeps.
template <class Get>
__device__ Kept keep_among(const Logits& logits, const SampleRow& row, int32_t n, const Get& get, Sum total,
                           SampleShared& shared) {
  const uint32_t top = ordered(logits.largest);
  Kept kept{0, total.count};
  if (row.top_k > 0 && row.top_k < total.count) {
    kept.threshold = bisect(
        logits, n, get, 1, top, [&](Sum sum) { return sum.count >= row.top_k; }, shared);
    const Sum above = measure(logits, n, get, kept.threshold + 1, shared);
    kept.ties = row.top_k - above.count;
    total.mass = above.mass + kept.ties * static_cast<double>(logits.weight(value_of(kept.threshold)));
  }
  if (row.top_p >= 1) return kept;
  const double wanted = row.top_p * total.mass;
  const Sum above = measure(logits, n, get, kept.threshold + 1, shared);
  Sum before = above;
  if (above.mass >= wanted && above.count > 0) {
    kept.threshold = bisect(
        logits, n, get, kept.threshold + 1, top, [&](Sum sum) { return sum.mass >= wanted; }, shared);
    before = measure(logits, n, get, kept.threshold + 1, shared);
    kept.ties = measure(logits, n, get, kept.threshold, shared).count - before.count;
  }
  const double each = logits.weight(value_of(kept.threshold));
  const double needed = each > 0 ? ceil((wanted - before.mass) / each) : 1.0;
  const double least = before.count == 0 ? 1.0 : 0.0;
  kept.ties = static_cast<int32_t>(fmin(fmax(needed, least), static_cast<double>(kept.ties)));
  return kept;
}

// Copies the logits of number `from` or more into the candidates.
__device__ inline int32_t collect(const Logits& logits, uint32_t from, SampleShared& shared) {
  if (threadIdx.x == 0) shared.num_candidates = 0;
  __syncthreads();
  for (int32_t i = threadIdx.x; i < logits.vocab; i += kSampleThreads) {
    const float value = logits.at(i);
    if (!isfinite(value) || ordered(value) < from) continue;
    const int32_t place = atomicAdd(&shared.num_candidates, 1);
    if (place < kCandidates) shared.candidates[place] = value;
  }
  __syncthreads();
  return shared.num_candidates;
}

__device__ inline Kept keep(const Logits& logits, const SampleRow& row, SampleShared& shared) {
  const auto all = [&](int32_t i) { return logits.at(i); };
  if (row.top_k <= 0 && row.top_p >= 1) return {0, 0};
  const Sum total = measure(logits, logits.vocab, all, 0, shared);
  const bool by_count = row.top_k > 0 && row.top_k < total.count;
  for (const float depth : {3.0f, 8.0f, 16.0f}) {  // in temperatures below the largest
    const float bound = logits.largest - depth * logits.temperature;
    if (!isfinite(bound)) break;
    const uint32_t from = ordered(bound);
    const Sum near = measure(logits, logits.vocab, all, from, shared);
    if (near.count > kCandidates) break;
    // Everything kept lies near: top_k ends there, or top_p does (with some room for rounding).
    if (by_count ? near.count < row.top_k : near.mass < row.top_p * total.mass * (1 + 1e-9)) continue;
    const int32_t n = collect(logits, from, shared);
    if (n > kCandidates) break;
    const auto candidate = [&](int32_t i) { return shared.candidates[i]; };
    return keep_among(logits, row, n, candidate, total, shared);
  }
  return keep_among(logits, row, logits.vocab, all, total, shared);
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

// The warp whose ids the draw falls among: each warp has a piece of them, in order.
__device__ inline void find_warp(const Kept& kept, float tie_weight, double uniform, SampleShared& shared) {
  const auto weigh = [&](int32_t w, int32_t ties) {
    const int32_t own = min(shared.count[w], max(kept.ties - ties, 0));
    return own > 0 ? shared.mass[w] + own * static_cast<double>(tie_weight) : shared.mass[w];
  };
  double total = 0;
  int32_t ties = 0;
  for (int32_t w = 0; w < kSampleWarps; ++w) {
    total += weigh(w, ties);
    ties += shared.count[w];
  }
  double sum = 0;
  ties = 0;
  shared.warp = -1;
  for (int32_t w = 0; w < kSampleWarps; ++w) {
    const double own = weigh(w, ties);
    if (own > 0) {
      shared.warp = w;
      shared.before = uniform * total - sum;  // what the piece's own sum must exceed
      shared.ties_before = ties;
      if (sum + own > uniform * total) break;
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

// The token that `uniform` of [0, 1) falls on: kept ids in order, each as wide as its weight.
__device__ inline int32_t draw(const Logits& logits, Kept kept, double uniform, SampleShared& shared) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int32_t piece = (logits.vocab + kSampleThreads - 1) / kSampleThreads * 32;
  const int32_t begin = warp * piece, end = min(logits.vocab, begin + piece);
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
  if (threadIdx.x == 0) find_warp(kept, logits.weight(value_of(kept.threshold)), uniform, shared);
  __syncthreads();
  if (warp == shared.warp) {
    const int32_t token = draw_among(logits, kept, begin, end, shared);
    if (lane == 0) shared.token = token;
  }
  __syncthreads();
  return shared.token;
}

}  // namespace whippet::cuda
