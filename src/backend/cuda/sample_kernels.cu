// From logits to tokens, as views.h says it, where sample_top_kernels.cu does not. Greedy rows without lists:
// several blocks a row look for the largest logit and the last of them to end decides. Rows whose kept set is
// large, and lists of logprobs: one block goes through the row a few times, for a histogram of its logits
// with the sums of their weights, for what lies in the bin where top_k or top_p ends, and for the draw in the
// order of ids, so that nothing is ever sorted. Bytes: the row, 4 times (6 with top_k and top_p), from L2.
#include <algorithm>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/sample.cuh"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int kGreedyThreads = 256;
constexpr int kGreedyLoads = 4;  // of four logits that a thread has under way

// The largest finite logit of those that a thread comes to by rising id, and the first id that has it.
struct Largest {
  float value = kBanned;
  int32_t id = 0;
  __device__ __forceinline__ void take(float x, int32_t i) {
    if (x > value && x <= std::numeric_limits<float>::max()) value = x, id = i;
  }
};

// Of [begin, end); begin is a multiple of four.
__device__ Largest largest_of(const float* row, int32_t begin, int32_t end) {
  Largest largest;
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) {
    for (int32_t i = begin + threadIdx.x; i < end; i += kGreedyThreads) largest.take(row[i], i);
    return largest;
  }
  constexpr int32_t kStep = 4 * kGreedyThreads;
  for (int32_t base = begin + 4 * threadIdx.x; base < end; base += kGreedyLoads * kStep) {
    float4 fours[kGreedyLoads];
#pragma unroll
    for (int j = 0; j < kGreedyLoads; ++j) {
      const int32_t i = base + j * kStep;
      fours[j] = make_float4(kBanned, kBanned, kBanned, kBanned);
      if (i + 4 <= end) {
        fours[j] = *reinterpret_cast<const float4*>(row + i);
      } else if (i < end) {
        fours[j].x = row[i];
        if (i + 1 < end) fours[j].y = row[i + 1];
        if (i + 2 < end) fours[j].z = row[i + 2];
      }
    }
#pragma unroll
    for (int j = 0; j < kGreedyLoads; ++j) {
      const int32_t i = base + j * kStep;
      largest.take(fours[j].x, i);
      largest.take(fours[j].y, i + 1);
      largest.take(fours[j].z, i + 2);
      largest.take(fours[j].w, i + 3);
    }
  }
  return largest;
}

__global__ void __launch_bounds__(kGreedyThreads)
    greedy_kernel(const float* logits, int64_t stride, int32_t vocab, int32_t* tokens,
                  SampleScratch scratch) {
  __shared__ unsigned long long shared[kGreedyThreads / 32];
  __shared__ bool is_last;
  wait_for_inputs();
  let_next_start();
  const float* row = logits + blockIdx.y * stride;
  const int32_t parts = gridDim.x, share = ((vocab + parts - 1) / parts + 3) / 4 * 4;
  const int32_t begin = blockIdx.x * share, end = min(vocab, begin + share);
  const Largest largest = largest_of(row, begin, end);
  unsigned long long best = block_best<kGreedyThreads>(ranked(largest.value, largest.id), shared);
  unsigned long long* of_row = scratch.best + static_cast<int64_t>(blockIdx.y) * kGreedyParts;
  if (threadIdx.x == 0) {
    of_row[blockIdx.x] = best;
    __threadfence();
    is_last = atomicAdd(scratch.counters + blockIdx.y, 1) == parts - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  best = threadIdx.x < parts ? __ldcg(of_row + threadIdx.x) : 0;
  best = block_best<kGreedyThreads>(best, shared);
  if (threadIdx.x != 0) return;
  tokens[blockIdx.y] = best == 0 ? -1 : ranked_id(best);
  scratch.counters[blockIdx.y] = 0;
}

__device__ float* row_of(const SampleArgs& args, int32_t r) {
  return static_cast<float*>(args.logits.data) + r * args.logits.stride;
}

__device__ void undo_lists(const SampleRow& row, int32_t vocab, float* x, const float* saved) {
  __syncthreads();
  for (int32_t i = threadIdx.x; i < row.num_seen; i += kSampleThreads)
    if (row.seen_ids[i] < vocab) x[row.seen_ids[i]] = saved[row.num_bias + i];
  __syncthreads();
  for (int32_t i = threadIdx.x; i < row.num_bias; i += kSampleThreads)
    if (row.bias_ids[i] < vocab) x[row.bias_ids[i]] = saved[i];
  __syncthreads();
}

// Logprob, rank and the most likely tokens, of the logits as they came.
__device__ void report(const SampleArgs& args, const SampleRow& row, int32_t r, int32_t token,
                       SampleShared& shared) {
  Logits raw{row_of(args, r), args.vocab_used};
  const unsigned long long best = best_of(raw, ~0ull, shared);
  raw.largest = best == 0 ? 0 : raw.x[ranked_id(best)];
  const auto get = [&](int32_t i) { return raw.at(i); };
  const Sum all = measure(raw, raw.vocab, get, 0, shared);
  const float log_sum = best == 0 ? 0 : raw.largest + static_cast<float>(log(all.mass));
  const bool known = token >= 0 && isfinite(raw.x[token]);
  const float logit = known ? raw.x[token] : 0;
  if (args.ranks != nullptr) {
    const Sum above = known ? measure(raw, raw.vocab, get, ordered(logit) + 1, shared) : Sum{};
    if (threadIdx.x == 0) args.ranks[r] = known ? 1 + above.count : 0;
  }
  if (args.logprobs != nullptr && threadIdx.x == 0) args.logprobs[r] = known ? logit - log_sum : kBanned;
  unsigned long long limit = ~0ull;
  for (int32_t i = 0; i < args.max_logprobs; ++i) {
    const bool wanted = i < row.num_logprobs && limit > 0;
    if (wanted) limit = best_of(raw, limit, shared);
    if (threadIdx.x != 0) continue;
    const int64_t at = static_cast<int64_t>(r) * args.max_logprobs + i;
    const bool present = wanted && limit > 0;
    args.top_ids[at] = present ? ranked_id(limit) : -1;
    args.top_logprobs[at] = present ? raw.x[ranked_id(limit)] - log_sum : kBanned;
  }
}

__global__ void __launch_bounds__(kSampleThreads)
    sample_kernel(SampleArgs args, const DeviceRow* rows, SampleScratch scratch) {
  __shared__ SampleShared shared;
  wait_for_inputs();
  let_next_start();
  const int32_t r = blockIdx.x;
  const bool wide = scratch.wide[r] != 0;
  if (!wide && rows[r].row.num_logprobs < 0) return;
  const SampleRow row = rows[r].row;
  Logits logits{row_of(args, r), args.vocab_used, row.mask};
  int32_t token = args.tokens[r];
  if (wide) {
    logits.largest = value_of(static_cast<uint32_t>(best_of(logits, ~0ull, shared) >> 32));
    logits.temperature = row.temperature;
    logits.min_p = row.min_p;
    const Kept kept = keep(logits, row, shared);
    token = draw(logits, kept, rows[r].uniform, shared);
    if (threadIdx.x == 0) args.tokens[r] = token;
  }
  if (row.num_logprobs < 0) return;
  undo_lists(row, args.vocab_used, logits.x, scratch.saved + rows[r].saved_offset);
  report(args, row, r, token, shared);
}

}  // namespace

void sample_greedy(const Queue& queue, const SampleArgs& args, const SampleScratch& scratch) {
  const int32_t rows = args.logits.rows;
  const int32_t parts = std::clamp(ceil_div(4 * queue.num_sms, rows), 1, kGreedyParts);
  launch(queue, "sample", greedy_kernel, dim3(static_cast<unsigned>(parts), static_cast<unsigned>(rows)),
         kGreedyThreads, 0, static_cast<const float*>(args.logits.data), args.logits.stride, args.vocab_used,
         args.tokens, scratch);
}

void sample_rows(const Queue& queue, const SampleArgs& args, const DeviceRow* rows,
                 const SampleScratch& scratch) {
  launch(queue, "sample", sample_kernel, dim3(static_cast<unsigned>(args.logits.rows)), kSampleThreads, 0,
         args, rows, scratch);
}

}  // namespace whippet::cuda
