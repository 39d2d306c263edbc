// From logits to tokens, as views.h says it. Greedy rows without lists: several blocks a row look for the
// largest logit and the last of them to end decides. Every other row: one block goes through its logits a few
// times: lists, the largest, the sums; then the threshold of top_k and top_p is found by bisection of the
// logits' bits over the few candidates near the top (over all of them where there are many), so that nothing
// is ever sorted; then the draw goes through the kept ids in their order. Bytes: the row, 4 to 6 times, from
// L2.
#include <algorithm>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/sample.cuh"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int kGreedyThreads = 256;

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
  unsigned long long best = 0;
  for (int32_t i = begin + threadIdx.x; i < end; i += kGreedyThreads) best = max(best, ranked(row[i], i));
  best = block_best<kGreedyThreads>(best, shared);
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

// Bias and bans, then penalties, in place; what was there is kept in `saved`.
__device__ void apply_lists(const SampleRow& row, int32_t vocab, float* x, float* saved) {
  for (int32_t i = threadIdx.x; i < row.num_bias; i += kSampleThreads)
    if (row.bias_ids[i] < vocab) saved[i] = x[row.bias_ids[i]];
  for (int32_t i = threadIdx.x; i < row.num_seen; i += kSampleThreads)
    if (row.seen_ids[i] < vocab) saved[row.num_bias + i] = x[row.seen_ids[i]];
  __syncthreads();
  for (int32_t i = threadIdx.x; i < row.num_bias; i += kSampleThreads)
    if (row.bias_ids[i] < vocab) atomicAdd(x + row.bias_ids[i], row.bias[i]);
  __syncthreads();
  for (int32_t i = threadIdx.x; i < row.num_seen; i += kSampleThreads) {
    if (row.seen_ids[i] >= vocab) continue;
    float value = x[row.seen_ids[i]];
    value = value > 0 ? value / row.repetition_penalty : value * row.repetition_penalty;
    const int32_t count = row.output_counts != nullptr ? row.output_counts[i] : 0;
    if (count > 0) value -= row.presence_penalty + row.frequency_penalty * static_cast<float>(count);
    x[row.seen_ids[i]] = value;
  }
  __syncthreads();
}

__device__ void undo_lists(const SampleRow& row, int32_t vocab, float* x, const float* saved) {
  __syncthreads();
  for (int32_t i = threadIdx.x; i < row.num_seen; i += kSampleThreads)
    if (row.seen_ids[i] < vocab) x[row.seen_ids[i]] = saved[row.num_bias + i];
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
  const SampleRow row = rows[r].row;
  Logits logits{row_of(args, r), args.vocab_used, row.mask};
  float* saved = scratch.saved + rows[r].saved_offset;
  apply_lists(row, args.vocab_used, logits.x, saved);
  const unsigned long long best = best_of(logits, ~0ull, shared);
  int32_t token = -1;
  if (best > 0) {
    token = ranked_id(best);
    if (row.temperature > 0) {
      logits.largest = logits.x[token];
      logits.temperature = row.temperature;
      logits.min_p = row.min_p;
      const Kept kept = keep(logits, row, shared);
      token = draw(logits, kept, rows[r].uniform, shared);
    }
  }
  if (threadIdx.x == 0) args.tokens[r] = token;
  if (row.num_logprobs < 0) return;
  undo_lists(row, args.vocab_used, logits.x, saved);
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
