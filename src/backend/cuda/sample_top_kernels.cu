// From logits to tokens in one reading of them, for all rows but those whose kept set has no bound that is
// known beforehand. Many blocks a row go through its chunks of 512 logits, one a warp: lists (each block
// those ids that lie in its chunks), the largest of each chunk, and where the row needs it the sum of its
// weights relative to that. The block of a row that ends last decides: the k-th largest of the chunks' maxima
// is a lower bound of the k-th largest logit, so that top_k (to 256) needs to look again at k chunks at most;
// min_p has a bound in logits; top_p tries 3, 8 and 16 temperatures below the largest; a plain draw goes to
// its chunk by their sums. What lies above the bound (to 4,096 logits) is sorted and then drawn from in the
// order of ids. Nothing depends on the number of blocks. Rows with more candidates are marked for
// sample_rows. Bytes: the row once, and a few chunks from L2.
#include <algorithm>

#include "backend/cuda/sample.cuh"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kPiece = 512;  // logits that a warp has under way
constexpr int kLoads = kPiece / 32;
constexpr int kTop = 4096;   // candidates
constexpr int kTies = 2048;  // of them with the number of the bound, behind the others
constexpr int kTieStep = 1024;
constexpr int32_t kTooMany = -2;
static_assert(kMostTop + kTieStep <= kTies && kMostTop <= kMaxChunks);

struct TopShared {
  union {
    unsigned long long keys[kTop];
    double masses[kMaxChunks];
  };
  unsigned long long chunk_best[kMaxChunks];
  uint16_t list[kMaxChunks];
  unsigned long long best[kWarps];
  double near;
  uint32_t bound;
  int32_t num_keys, num_ties, num_list, num_above, kept, token;
  bool is_last;
};

// A row, and how it is cut.
struct Row {
  Logits logits;
  int32_t length, chunks;  // logits a chunk
};

enum class Kind { kTopK, kMinP, kPlain, kTopP, kOther };
__device__ Kind kind_of(const SampleRow& row, int32_t vocab) {
  if (row.top_k > 0 && row.top_k <= kMostTop) return Kind::kTopK;
  if (row.top_k > 0 && row.top_k < vocab) return Kind::kOther;
  if (row.min_p > 0) return Kind::kMinP;
  return row.top_p >= 1 ? Kind::kPlain : Kind::kTopP;
}

// Bias and bans, then penalties, of ids in [begin, end); what was there before each is kept in `saved`.
__device__ void apply_lists(const SampleRow& row, int32_t begin, int32_t end, float* x, float* saved) {
  const auto here = [&](int32_t id) { return id >= begin && id < end; };
  if (row.num_bias > 0) {
    for (int32_t i = threadIdx.x; i < row.num_bias; i += kThreads)
      if (here(row.bias_ids[i])) saved[i] = x[row.bias_ids[i]];
    __syncthreads();
    for (int32_t i = threadIdx.x; i < row.num_bias; i += kThreads)
      if (here(row.bias_ids[i])) atomicAdd(x + row.bias_ids[i], row.bias[i]);
    __syncthreads();
  }
  constexpr int kAtOnce = 4;
  for (int32_t base = threadIdx.x; base < row.num_seen; base += kAtOnce * kThreads) {
    int32_t ids[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      ids[j] = base + j * kThreads < row.num_seen ? row.seen_ids[base + j * kThreads] : -1;
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      if (!here(ids[j])) continue;
      const int32_t i = base + j * kThreads;
      float value = x[ids[j]];
      saved[row.num_bias + i] = value;
      value = value > 0 ? value / row.repetition_penalty : value * row.repetition_penalty;
      const int32_t count = row.output_counts != nullptr ? row.output_counts[i] : 0;
      if (count > 0) value -= row.presence_penalty + row.frequency_penalty * static_cast<float>(count);
      x[ids[j]] = value;
    }
  }
  if (row.num_seen > 0) __syncthreads();
}

// Logits begin + lane, + 32, ... of [begin, end), from L2 where other blocks may have written them.
template <bool kFromL2>
__device__ __forceinline__ void load(const Logits& logits, int32_t begin, int32_t end,
                                     float (&values)[kLoads]) {
  const int32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < kLoads; ++j) {
    const int32_t i = begin + 32 * j + lane;
    values[j] = i < end ? (kFromL2 ? __ldcg(logits.x + i) : logits.x[i]) : kBanned;
  }
  if (logits.mask == nullptr) return;
#pragma unroll
  for (int j = 0; j < kLoads; ++j) {
    const int32_t i = begin + 32 * j + lane;
    if (i < end && (logits.mask[i / 32] >> (i % 32) & 1) == 0) values[j] = kBanned;
  }
}

// The largest of a chunk, and what it weighs relative to that. One warp.
__device__ void look_at(Row row, int32_t chunk, bool weighs, unsigned long long* best_out, double* mass_out) {
  const int32_t lane = threadIdx.x % 32, begin = chunk * row.length;
  const int32_t end = min(row.logits.vocab, begin + row.length);
  float values[kLoads];
  float largest = kBanned;
  int32_t id = 0;
  for (int32_t base = begin; base < end; base += kPiece) {
    load<false>(row.logits, base, end, values);
#pragma unroll
    for (int j = 0; j < kLoads; ++j)
      if (values[j] > largest && values[j] <= std::numeric_limits<float>::max())
        largest = values[j], id = base + 32 * j + lane;
  }
  unsigned long long best = ranked(largest, id);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) best = max(best, __shfl_xor_sync(~0u, best, offset));
  double mass = 0;
  if (weighs && best > 0) {
    row.logits.largest = value_of(static_cast<uint32_t>(best >> 32));
    for (int32_t base = begin; base < end; base += kPiece) {
      if (row.length > kPiece) load<false>(row.logits, base, end, values);
#pragma unroll
      for (int j = 0; j < kLoads; ++j)
        if (isfinite(values[j])) mass += row.logits.weight(values[j]);
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) mass += __shfl_xor_sync(~0u, mass, offset);
  }
  if (lane == 0) best_out[chunk] = best, mass_out[chunk] = mass;
}

// The k-th largest of the maxima of chunks, or of a few chunks together where that serves as well (the time
// grows with the square of their number), as a number; 0 where there are fewer.
__device__ uint32_t bound_of_top(int32_t chunks, int32_t k, TopShared& shared) {
  const int32_t each = k <= 32 ? (chunks + 127) / 128 : 1, groups = (chunks + each - 1) / each;
  for (int32_t g = threadIdx.x; g < groups; g += kThreads) {
    unsigned long long best = 0;
    for (int32_t c = g; c < chunks; c += groups) best = max(best, shared.chunk_best[c]);
    shared.keys[g] = best;
  }
  if (threadIdx.x == 0) shared.bound = 0;
  __syncthreads();
  for (int32_t g = threadIdx.x; g < groups; g += kThreads) {
    const unsigned long long own = shared.keys[g];
    int32_t above = 0;
#pragma unroll 8
    for (int32_t other = 0; other < groups; ++other) above += shared.keys[other] > own;
    if (own > 0 && above == k - 1) shared.bound = static_cast<uint32_t>(own >> 32);
  }
  __syncthreads();
  return shared.bound;
}

// Keys of logits with number `from` or more, in any order, into keys[0 ... kTop); where `ties`, those of
// number from - 1 into keys[kTies ...]. Counts all, copies what has room.
__device__ void collect_keys(const Row& row, uint32_t from, bool ties, TopShared& shared) {
  if (threadIdx.x == 0) shared.num_keys = 0, shared.num_ties = 0, shared.num_list = 0;
  __syncthreads();
  const uint32_t least = ties ? from - 1 : from;
  for (int32_t c = threadIdx.x; c < row.chunks; c += kThreads)
    if (static_cast<uint32_t>(shared.chunk_best[c] >> 32) >= max(least, 1u))
      shared.list[atomicAdd(&shared.num_list, 1)] = static_cast<uint16_t>(c);
  __syncthreads();
  const int32_t most = ties ? kTies : kTop;
  for (int32_t l = threadIdx.x / 32; l < shared.num_list; l += kWarps) {
    const int32_t begin = shared.list[l] * row.length, end = min(row.logits.vocab, begin + row.length);
    for (int32_t base = begin; base < end; base += kPiece) {
      float values[kLoads];
      load<true>(row.logits, base, end, values);
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        if (!isfinite(values[j]) || ordered(values[j]) < least) continue;
        const int32_t id = base + 32 * j + static_cast<int32_t>(threadIdx.x % 32);
        const bool is_tie = ordered(values[j]) < from;
        const int32_t place = atomicAdd(is_tie ? &shared.num_ties : &shared.num_keys, 1);
        if (place < (is_tie ? kTop - kTies : most))
          shared.keys[is_tie ? kTies + place : place] = ranked(values[j], id);
      }
    }
  }
  __syncthreads();
}

// The first `wanted` or more, in the order of ids, of the logits with this number, into keys[kTies ...].
__device__ void collect_ties(const Logits& logits, uint32_t number, int32_t wanted, TopShared& shared) {
  __syncthreads();
  if (threadIdx.x == 0) shared.num_ties = 0;
  __syncthreads();
  for (int32_t base = 0; base < logits.vocab; base += kTieStep) {
#pragma unroll
    for (int j = 0; j < kTieStep / kThreads; ++j) {
      const int32_t i = base + j * kThreads + static_cast<int32_t>(threadIdx.x);
      if (i >= logits.vocab) continue;
      const bool banned = logits.mask != nullptr && (logits.mask[i / 32] >> (i % 32) & 1) == 0;
      const float value = banned ? kBanned : __ldcg(logits.x + i);
      if (isfinite(value) && ordered(value) == number)
        shared.keys[kTies + atomicAdd(&shared.num_ties, 1)] = ranked(value, i);
    }
    __syncthreads();
    const int32_t found = shared.num_ties;
    __syncthreads();
    if (found >= wanted) break;
  }
}

// Falling, keys[0 ... n), which differ; may put zeros behind them up to the next power of two.
__device__ void sort_keys(int32_t n, TopShared& shared) {
  if (n <= kThreads) {
    const auto i = static_cast<int32_t>(threadIdx.x);
    const unsigned long long own = i < n ? shared.keys[i] : 0;
    int32_t place = 0;
    if (i < n) {
#pragma unroll 8
      for (int32_t other = 0; other < n; ++other) place += shared.keys[other] > own;
    }
    __syncthreads();
    if (i < n) shared.keys[place] = own;
    __syncthreads();
    return;
  }
  int32_t size = 32;
  while (size < n) size *= 2;
  for (int32_t i = n + threadIdx.x; i < size; i += kThreads) shared.keys[i] = 0;
  __syncthreads();
  for (int32_t run = 2; run <= size; run *= 2) {  // bitonic: Batcher 1968
    for (int32_t step = run / 2; step > 0; step /= 2) {
      for (int32_t i = threadIdx.x; i < size / 2; i += kThreads) {
        const int32_t low = 2 * i - (i & (step - 1)), high = low + step;
        const unsigned long long a = shared.keys[low], b = shared.keys[high];
        if ((a < b) == ((low & run) == 0)) shared.keys[low] = b, shared.keys[high] = a;
      }
      __syncthreads();
    }
  }
}

__device__ __forceinline__ double sum_up_to_lane(double x) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const double other = __shfl_up_sync(~0u, x, offset);
    if (static_cast<int32_t>(threadIdx.x % 32) >= offset) x += other;
  }
  return x;
}

// How many of the sorted keys stay; `total` is what all of the row weigh, where known (>= 0). 0: the
// candidates do not reach as far as top_p. One warp.
__device__ int32_t kept_of(const Logits& logits, const SampleRow& row, int32_t n, double total,
                           const TopShared& shared) {
  const int32_t lane = threadIdx.x % 32;
  const auto weight = [&](int32_t i) {
    return logits.weight(value_of(static_cast<uint32_t>(shared.keys[i] >> 32)));
  };
  int32_t kept = row.top_k > 0 ? min(n, row.top_k) : n;
  double sum = 0;
  for (int32_t base = 0; base < kept; base += 32) {
    const int32_t i = base + lane;
    const float own = i < kept ? weight(i) : 0;
    const unsigned small = __ballot_sync(~0u, i > 0 && i < kept && own < row.min_p);
    if (small != 0) kept = base + __ffs(small) - 1;
    sum += __shfl_sync(~0u, sum_up_to_lane(i < kept ? own : 0), 31);
  }
  if (row.top_p >= 1) return kept;
  const double wanted = static_cast<double>(row.top_p) * (total < 0 ? sum : total);
  if (total >= 0 && sum < wanted * (1 + 1e-9)) return 0;
  sum = 0;
  for (int32_t base = 0; base < kept; base += 32) {
    const double running = sum + sum_up_to_lane(base + lane < kept ? weight(base + lane) : 0);
    const unsigned there = __ballot_sync(~0u, base + lane < kept && running >= wanted);
    if (there != 0) return base + __ffs(there);
    sum = __shfl_sync(~0u, running, 31);
  }
  return kept;
}

// Number i of [0, n) that the draw falls on, each as wide as its weight; `last` where rounding leaves the sum
// below. One warp.
struct Draw {
  double before = 0;  // of the sum that must be exceeded
  int32_t last = -1, found = -1;
  // Of the next 32, a lane each.
  __device__ bool take(int32_t base, double weight, double wanted) {
    const double running = before + sum_up_to_lane(weight);
    const unsigned any = __ballot_sync(~0u, weight > 0);
    const unsigned beyond = __ballot_sync(~0u, weight > 0 && running > wanted);
    if (any != 0) last = base + 31 - __clz(any);
    if (beyond != 0) found = base + __ffs(beyond) - 1;
    if (beyond == 0) before = __shfl_sync(~0u, running, 31);
    return beyond != 0;
  }
};

// A draw from the `kept` first of the sorted keys, in the order of ids.
__device__ int32_t draw_of_keys(const Logits& logits, int32_t kept, double uniform, TopShared& shared) {
  for (int32_t i = threadIdx.x; i < kept; i += kThreads)
    shared.keys[i] = shared.keys[i] << 32 | shared.keys[i] >> 32;
  __syncthreads();
  sort_keys(kept, shared);
  if (threadIdx.x < 32) {
    const int32_t lane = threadIdx.x;
    const auto weight = [&](int32_t i) {
      return i < kept ? static_cast<double>(logits.weight(value_of(static_cast<uint32_t>(shared.keys[i]))))
                      : 0.0;
    };
    double total = 0;
    for (int32_t base = 0; base < kept; base += 32) total += weight(base + lane);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) total += __shfl_xor_sync(~0u, total, offset);
    Draw draw;
    for (int32_t base = 0; base < kept && !draw.take(base, weight(base + lane), uniform * total);
         base += 32) {
    }
    const int32_t at = draw.found >= 0 ? draw.found : max(draw.last, 0);
    if (lane == 0) shared.token = ranked_id(shared.keys[at] >> 32);
  }
  __syncthreads();
  return shared.token;
}

// What the row weighs relative to its largest, chunk by chunk, into shared.masses. The sum, everywhere.
__device__ double weigh_chunks(const Row& row, const double* masses, TopShared& shared) {
  const auto scale = [&](int32_t c) {
    const float largest = value_of(static_cast<uint32_t>(shared.chunk_best[c] >> 32));
    return exp((static_cast<double>(largest) - row.logits.largest) / row.logits.temperature);
  };
  for (int32_t c = threadIdx.x; c < row.chunks; c += kThreads)
    shared.masses[c] = shared.chunk_best[c] > 0 ? __ldcg(masses + c) * scale(c) : 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    double total = 0;
    for (int32_t c = threadIdx.x; c < row.chunks; c += 32) total += shared.masses[c];
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) total += __shfl_xor_sync(~0u, total, offset);
    if (threadIdx.x == 0) shared.near = total;
  }
  __syncthreads();
  return shared.near;
}

// A draw from all of the row: the chunk by the sums, then the id in it.
__device__ int32_t draw_of_all(Row row, double uniform, double total, const double* masses,
                               TopShared& shared) {
  if (threadIdx.x < 32) {
    const int32_t lane = threadIdx.x;
    const double wanted = uniform * total;
    Draw draw;
    for (int32_t base = 0; base < row.chunks; base += 32)
      if (draw.take(base, base + lane < row.chunks ? shared.masses[base + lane] : 0, wanted)) break;
    const int32_t chunk = draw.found >= 0 ? draw.found : max(draw.last, 0);
    // Again, for the exact sum before the chunk, in its own scale.
    double before = 0;
    for (int32_t c = lane; c < chunk; c += 32) before += shared.masses[c];
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) before += __shfl_xor_sync(~0u, before, offset);
    const double rest = (wanted - before) / shared.masses[chunk] * __ldcg(masses + chunk);
    row.logits.largest = value_of(static_cast<uint32_t>(shared.chunk_best[chunk] >> 32));
    const int32_t begin = chunk * row.length, end = min(row.logits.vocab, begin + row.length);
    Draw inside;
    for (int32_t base = begin; base < end && inside.found < 0; base += kPiece) {
      float values[kLoads];
      load<true>(row.logits, base, end, values);
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        const double weight = isfinite(values[j]) ? row.logits.weight(values[j]) : 0.0f;
        if (inside.found < 0) inside.take(base + 32 * j, weight, rest);
      }
    }
    if (lane == 0) shared.token = inside.found >= 0 ? inside.found : inside.last;
  }
  __syncthreads();
  return shared.token;
}

// The number of the k-th largest logit, by halves, in the chunks that collect_keys listed: k or more of their
// logits have the number `low` or a larger one.
__device__ uint32_t number_of_top(const Row& row, uint32_t low, int32_t k, TopShared& shared) {
  uint32_t high = ordered(row.logits.largest);
  __syncthreads();
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    if (threadIdx.x == 0) shared.num_above = 0;
    __syncthreads();
    int32_t own = 0;
    for (int32_t l = threadIdx.x / 32; l < shared.num_list; l += kWarps) {
      const int32_t begin = shared.list[l] * row.length, end = min(row.logits.vocab, begin + row.length);
      for (int32_t base = begin; base < end; base += kPiece) {
        float values[kLoads];
        load<true>(row.logits, base, end, values);
#pragma unroll
        for (int j = 0; j < kLoads; ++j) own += isfinite(values[j]) && ordered(values[j]) >= middle;
      }
    }
    if (own > 0) atomicAdd(&shared.num_above, own);
    __syncthreads();
    const bool enough = shared.num_above >= k;
    __syncthreads();
    if (enough) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// The keys that top_k may keep: all above the bound and enough of those that equal it. Their number.
__device__ int32_t collect_top(const Row& row, int32_t k, TopShared& shared) {
  uint32_t bound = bound_of_top(row.chunks, k, shared);
  int32_t own = 0;
  for (int32_t c = threadIdx.x; c < row.chunks; c += kThreads)
    own += bound > 0 && static_cast<uint32_t>(shared.chunk_best[c] >> 32) == bound;
  bool few = __syncthreads_count(own > 0) <= 32;
  collect_keys(row, bound + 1, bound > 0 && few, shared);
  int32_t above = shared.num_keys;
  if (above > (bound > 0 ? kTies : kTop)) {  // the chunks of the bound are full of larger ones
    bound = number_of_top(row, max(bound, 1u), k, shared);
    few = false;
    collect_keys(row, bound + 1, false, shared);
    above = shared.num_keys;
  }
  if (bound == 0 || above >= k) return above;
  if (!few || shared.num_ties > kTop - kTies) collect_ties(row.logits, bound, k - above, shared);
  const int32_t ties = shared.num_ties;
  unsigned long long moved[(kTop - kTies) / kThreads];
#pragma unroll
  for (int j = 0; j < (kTop - kTies) / kThreads; ++j)
    moved[j] = shared.keys[kTies + j * kThreads + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < (kTop - kTies) / kThreads; ++j) {
    const int32_t i = j * kThreads + static_cast<int32_t>(threadIdx.x);
    if (i < ties) shared.keys[above + i] = moved[j];
  }
  __syncthreads();
  return above + ties;
}

// The bound in logits of min_p, a little below it: what weights lose to rounding.
__device__ float bound_of_min_p(const Logits& logits, float min_p) {
  const float bound = logits.largest + logits.temperature * logf(fminf(min_p, 1.0f));
  return bound - 1e-5f * (fabsf(bound) + fabsf(logits.largest) + logits.temperature);
}

// Sorts n candidates and draws; kTooMany where they do not reach as far as top_p.
__device__ int32_t draw_of_few(const Row& row, const SampleRow& params, int32_t n, double total,
                               double uniform, TopShared& shared) {
  sort_keys(n, shared);
  if (threadIdx.x < 32) {
    const int32_t kept = kept_of(row.logits, params, n, total, shared);
    if (threadIdx.x == 0) shared.kept = kept;
  }
  __syncthreads();
  return shared.kept == 0 ? kTooMany : draw_of_keys(row.logits, shared.kept, uniform, shared);
}

__device__ int32_t decide(const Row& row, const SampleRow& params, double uniform, const double* masses,
                          TopShared& shared) {
  switch (kind_of(params, row.logits.vocab)) {
    case Kind::kTopK: {
      const int32_t n = collect_top(row, params.top_k, shared);
      return draw_of_few(row, params, n, -1, uniform, shared);
    }
    case Kind::kMinP: {
      const float bound = bound_of_min_p(row.logits, params.min_p);
      if (!isfinite(bound)) return kTooMany;
      collect_keys(row, ordered(bound), false, shared);
      const int32_t n = shared.num_keys;
      return n > kTop ? kTooMany : draw_of_few(row, params, n, -1, uniform, shared);
    }
    case Kind::kPlain:
      return draw_of_all(row, uniform, weigh_chunks(row, masses, shared), masses, shared);
    case Kind::kTopP: {
      const double total = weigh_chunks(row, masses, shared);
      for (const float depth : {3.0f, 8.0f, 16.0f}) {
        const float bound = row.logits.largest - depth * row.logits.temperature;
        if (!isfinite(bound)) break;
        collect_keys(row, ordered(bound), false, shared);
        const int32_t n = shared.num_keys;
        if (n > kTop) break;
        const int32_t token = draw_of_few(row, params, n, total, uniform, shared);
        if (token != kTooMany) return token;
        __syncthreads();
      }
      return kTooMany;
    }
    case Kind::kOther:
      break;
  }
  return kTooMany;
}

// Whether this block is the last of its row to come here. What the others wrote is then seen.
__device__ bool is_last_of_row(int32_t* counter, TopShared& shared) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) shared.is_last = atomicAdd(counter, 1) == static_cast<int32_t>(gridDim.x) - 1;
  __syncthreads();
  __threadfence();
  return shared.is_last;
}

// Grid: shares of a row, rows.
__global__ void __launch_bounds__(kThreads)
    top_kernel(SampleArgs args, const DeviceRow* rows, SampleScratch scratch) {
  __shared__ TopShared shared;
  wait_for_inputs();
  let_next_start();
  const int32_t r = blockIdx.y, share = (scratch.chunks + gridDim.x - 1) / gridDim.x;
  const int32_t first = blockIdx.x * share, last = min(scratch.chunks, first + share);
  const SampleRow& params = rows[r].row;
  Row row{{static_cast<float*>(args.logits.data) + r * args.logits.stride, args.vocab_used, params.mask},
          scratch.chunk,
          scratch.chunks};
  row.logits.temperature = params.temperature;
  row.logits.min_p = params.min_p;
  apply_lists(params, first * row.length, min(args.vocab_used, last * row.length), row.logits.x,
              scratch.saved + rows[r].saved_offset);
  const Kind kind = kind_of(params, args.vocab_used);
  const bool weighs = params.temperature > 0 && (kind == Kind::kPlain || kind == Kind::kTopP);
  unsigned long long* best_of = scratch.chunk_best + static_cast<int64_t>(r) * row.chunks;
  double* masses = scratch.chunk_mass + static_cast<int64_t>(r) * row.chunks;
  for (int32_t c = first + static_cast<int32_t>(threadIdx.x / 32); c < last; c += kWarps)
    look_at(row, c, weighs, best_of, masses);
  if (!is_last_of_row(scratch.counters + r, shared)) return;
  unsigned long long best = 0;
  for (int32_t c = threadIdx.x; c < row.chunks; c += kThreads) {
    shared.chunk_best[c] = __ldcg(best_of + c);
    best = max(best, shared.chunk_best[c]);
  }
  best = block_best<kThreads>(best, shared.best);
  int32_t token = best == 0 ? -1 : ranked_id(best);
  if (best > 0 && params.temperature > 0) {
    row.logits.largest = value_of(static_cast<uint32_t>(best >> 32));
    token = decide(row, params, rows[r].uniform, masses, shared);
  }
  if (threadIdx.x != 0) return;
  args.tokens[r] = token;
  scratch.wide[r] = token == kTooMany ? 1 : 0;
  scratch.counters[r] = 0;
}

}  // namespace

void sample_top(const Queue& queue, const SampleArgs& args, const DeviceRow* rows,
                const SampleScratch& scratch) {
  const int32_t count = args.logits.rows;
  // Not more than find room at once.
  const int32_t shares = std::clamp(4 * queue.num_sms / count, 1, ceil_div(scratch.chunks, kWarps));
  launch(queue, "sample", top_kernel, dim3(static_cast<unsigned>(shares), static_cast<unsigned>(count)),
         kThreads, 0, args, rows, scratch);
}

}  // namespace whippet::cuda
