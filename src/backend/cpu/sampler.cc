#include "backend/cpu/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "backend/philox.h"

namespace whippet::cpu {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();
constexpr int32_t kScanBlock = 4096;

// One row at work. x [n] holds the adjusted logits; -inf where a token cannot be drawn.
struct Row {
  const Kernels& kernels;
  const SampleRow& params;
  WorkerScratch& scratch;
  float* x;
  int32_t n;
  float max;  // of x
};

// By falling value, the lower id first among equals.
struct Falling {
  const float* x;
  bool operator()(int32_t a, int32_t b) const { return x[a] > x[b] || (x[a] == x[b] && a < b); }
};

void apply_mask(const uint32_t* mask, float* x, int32_t n) {
  for (int32_t begin = 0; begin < n; begin += 32) {
    const uint32_t allowed = mask[begin / 32];
    if (allowed == ~0u) continue;
    const int32_t count = std::min(32, n - begin);
    if (allowed == 0) {
      std::fill_n(x + begin, count, kBanned);
      continue;
    }
    const uint32_t inside = ~0u >> (32 - count);
    for (uint32_t left = ~allowed & inside; left != 0; left &= left - 1)
      x[begin + std::countr_zero(left)] = kBanned;
  }
}

void adjust(const SampleRow& row, float* x, int32_t n) {
  for (int32_t i = 0; i < row.num_bias; ++i)
    if (row.bias_ids[i] < n) x[row.bias_ids[i]] += row.bias[i];
  if (row.mask != nullptr) apply_mask(row.mask, x, n);
  for (int32_t i = 0; i < row.num_seen; ++i) {
    if (row.seen_ids[i] >= n) continue;
    float& value = x[row.seen_ids[i]];
    value = value > 0 ? value / row.repetition_penalty : value * row.repetition_penalty;
    const int32_t count = row.output_counts != nullptr ? row.output_counts[i] : 0;
    if (count > 0) value -= row.presence_penalty + row.frequency_penalty * static_cast<float>(count);
  }
}

// The k first ids of x by falling value into ids, sorted; fewer where fewer are finite. Scans with a
// threshold that rises as candidates come in.
int32_t select_top(const Kernels& kernels, const float* x, int32_t n, int32_t k, int32_t* ids) {
  const Falling falling{x};
  float threshold = std::numeric_limits<float>::lowest();
  int32_t count = 0;
  for (int32_t begin = 0; begin < n; begin += kScanBlock) {
    const int32_t found =
        kernels.find_at_least(x + begin, std::min(kScanBlock, n - begin), threshold, ids + count);
    for (int32_t i = 0; i < found; ++i) ids[count + i] += begin;
    count += found;
    if (count > k && (count > 2 * k + kScanBlock || begin == 0)) {
      std::nth_element(ids, ids + k - 1, ids + count, falling);
      threshold = x[ids[k - 1]];
      count = k;
    }
  }
  if (count > k) std::nth_element(ids, ids + k - 1, ids + count, falling);
  count = std::min(count, k);
  std::sort(ids, ids + count, falling);
  return count;
}

double weight_of(const Row& row, int32_t id) {
  return std::exp((static_cast<double>(row.x[id]) - row.max) / row.params.temperature);
}

float inverse_temperature(const Row& row) {  // finite, so that the largest logit keeps weight 1
  return std::min(1 / row.params.temperature, std::numeric_limits<float>::max());
}

// Draws among ids [count] with the given weights, walking in their order.
template <class Weight>
int32_t walk(const Row& row, const int32_t* ids, int32_t count, const Weight& weight) {
  double total = 0;
  for (int32_t i = 0; i < count; ++i) total += weight(ids[i]);
  const double target = uniform_draw(row.params.seed, row.params.position) * total;
  double sum = 0;
  int32_t token = -1;
  for (int32_t i = 0; i < count; ++i) {
    const double each = weight(ids[i]);
    if (each == 0) continue;
    token = ids[i];  // the last one where rounding leaves the sum below the target
    sum += each;
    if (sum > target) break;
  }
  return token;
}

// By rising id, so that the draw depends on the set alone.
template <class Weight>
int32_t draw(const Row& row, int32_t* ids, int32_t count, const Weight& weight) {
  std::sort(ids, ids + count);
  return walk(row, ids, count, weight);
}

// How many of the first ids by falling weight reach top_p of the total.
template <class Weight>
int32_t nucleus(const Row& row, const int32_t* ids, int32_t count, const Weight& weight) {
  if (row.params.top_p >= 1) return count;
  double total = 0;
  for (int32_t i = 0; i < count; ++i) total += weight(ids[i]);
  double sum = weight(ids[0]);
  int32_t kept = 1;
  while (kept < count && sum < row.params.top_p * total) sum += weight(ids[kept++]);
  return kept;
}

// top_k or min_p leaves few candidates: all in double.
int32_t draw_from_few(const Row& row) {
  int32_t* ids = row.scratch.ids.get();
  const auto weight = [&](int32_t id) { return weight_of(row, id); };
  const auto too_small = [&](int32_t id) { return weight(id) < row.params.min_p && row.x[id] < row.max; };
  if (row.params.top_k > 0 && row.params.top_k < row.n) {
    int32_t count = select_top(row.kernels, row.x, row.n, row.params.top_k, ids);
    count = static_cast<int32_t>(std::find_if(ids, ids + count, too_small) - ids);
    return draw(row, ids, nucleus(row, ids, count, weight), weight);
  }
  // A little below the limit of min_p, then exactly.
  const double limit = row.max + row.params.temperature * std::log(static_cast<double>(row.params.min_p));
  const double slack = 1e-5 * (std::abs(limit) + std::abs(row.max) + row.params.temperature);
  const auto threshold =
      static_cast<float>(std::max(limit - slack, double{std::numeric_limits<float>::lowest()}));
  int32_t count = row.kernels.find_at_least(row.x, row.n, threshold, ids);
  count = static_cast<int32_t>(std::remove_if(ids, ids + count, too_small) - ids);
  if (row.params.top_p >= 1) return walk(row, ids, count, weight);  // by rising id already
  std::sort(ids, ids + count, Falling{row.x});
  return draw(row, ids, nucleus(row, ids, count, weight), weight);
}

// The id by falling weight at which the sum reaches the target: quickselect by weight. Reorders ids.
int32_t nucleus_border(const Row& row, int32_t* ids, int32_t count, double target) {
  const Falling falling{row.x};
  const float* weights = row.scratch.weights.get();
  int32_t* low = ids;
  int32_t* high = ids + count;
  double before = 0;  // of all that fall before low
  while (high - low > 32) {
    int32_t three[] = {*low, low[(high - low) / 2], *(high - 1)};
    std::sort(three, three + 3, falling);
    const int32_t pivot = three[1];  // neither the first nor the last, so that both sides shrink
    int32_t* split = std::partition(low, high, [&](int32_t id) { return !falling(pivot, id); });
    double mass = 0;
    for (const int32_t* id = low; id < split; ++id) mass += weights[*id];
    if (before + mass >= target) {
      high = split;
    } else {
      before += mass;
      low = split;
    }
  }
  std::sort(low, high, falling);
  while (low + 1 < high && before + weights[*low] < target) before += weights[*low++];
  return *low;
}

// The smallest set by falling weight that has top_p of the whole; nothing is sorted that does not have to be.
int32_t draw_from_nucleus(const Row& row) {
  int32_t* ids = row.scratch.ids.get();
  const float* weights = row.scratch.weights.get();
  const double total = row.kernels.softmax_weights(row.x, row.n, row.max, inverse_temperature(row),
                                                   row.scratch.weights.get(), row.scratch.block_sums.get());
  const double target = row.params.top_p * total;
  int32_t count = 0;
  for (float nats : {4.0f, 8.0f, 16.0f, std::numeric_limits<float>::infinity()}) {
    const float threshold =
        std::max(row.max - nats * row.params.temperature, std::numeric_limits<float>::lowest());
    count = row.kernels.find_at_least(row.x, row.n, threshold, ids);
    double mass = 0;
    for (int32_t i = 0; i < count; ++i) mass += weights[ids[i]];
    if (mass > target) break;
  }
  const int32_t border = nucleus_border(row, ids, count, target);
  const Falling falling{row.x};
  if (count < row.n / 16) {
    int32_t* end = std::partition(ids, ids + count, [&](int32_t id) { return !falling(border, id); });
    return draw(row, ids, static_cast<int32_t>(end - ids),
                [&](int32_t id) { return static_cast<double>(weights[id]); });
  }
  std::iota(ids, ids + row.n, 0);  // cheaper than sorting so many
  return walk(row, ids, row.n,
              [&](int32_t id) { return falling(border, id) ? 0.0 : static_cast<double>(weights[id]); });
}

int32_t draw_from_all(const Row& row) {
  const float* weights = row.scratch.weights.get();
  const double* block_sums = row.scratch.block_sums.get();
  const double total = row.kernels.softmax_weights(row.x, row.n, row.max, inverse_temperature(row),
                                                   row.scratch.weights.get(), row.scratch.block_sums.get());
  double left = uniform_draw(row.params.seed, row.params.position) * total;
  int32_t block = 0;
  const int32_t last_block = (row.n - 1) / kExpBlock;
  while (block < last_block && left >= block_sums[block]) left -= block_sums[block++];
  int32_t token = -1;
  for (int32_t i = block * kExpBlock; i < std::min(row.n, (block + 1) * kExpBlock); ++i) {
    if (weights[i] == 0) continue;
    token = i;
    left -= static_cast<double>(weights[i]);
    if (left < 0) return token;
  }
  if (token >= 0) return token;  // rounding left a little over
  for (token = block * kExpBlock; token > 0 && weights[token] == 0; --token) {
  }
  return token;
}

int32_t choose(const Row& row) {
  const SampleRow& params = row.params;
  if (row.max == kBanned) return -1;
  if (params.temperature <= 0 || params.top_k == 1 || params.top_p <= 0) {
    row.kernels.find_at_least(row.x, row.n, row.max, row.scratch.ids.get());
    return row.scratch.ids[0];
  }
  if ((params.top_k > 0 && params.top_k < row.n) || params.min_p > 0) return draw_from_few(row);
  return params.top_p < 1 ? draw_from_nucleus(row) : draw_from_all(row);
}

void report(const Kernels& kernels, const SampleArgs& args, int32_t r, WorkerScratch& scratch) {
  const SampleRow& row = args.rows[r];
  float* raw = scratch.raw.get();
  const int32_t n = args.vocab_used, token = args.tokens[r];
  const float max = kernels.clean_max(raw, n);
  const double total = max == kBanned ? 1
                                      : kernels.softmax_weights(raw, n, max, 1, scratch.weights.get(),
                                                                scratch.block_sums.get());
  const double log_sum = max + std::log(total);
  const auto logprob = [&](int32_t id) { return static_cast<float>(raw[id] - log_sum); };
  const bool known = token >= 0 && raw[token] != kBanned;
  if (args.logprobs != nullptr) args.logprobs[r] = known ? logprob(token) : kBanned;
  if (args.ranks != nullptr) args.ranks[r] = known ? 1 + kernels.count_greater(raw, n, raw[token]) : 0;
  const int32_t wanted = std::min(row.num_logprobs, args.max_logprobs);
  const int32_t found = wanted > 0 ? select_top(kernels, raw, n, wanted, scratch.ids.get()) : 0;
  for (int32_t i = 0; i < args.max_logprobs; ++i) {
    const int64_t at = static_cast<int64_t>(r) * args.max_logprobs + i;
    args.top_ids[at] = i < found ? scratch.ids[i] : -1;
    args.top_logprobs[at] = i < found ? logprob(scratch.ids[i]) : kBanned;
  }
}

}  // namespace

void sample_row(const Kernels& kernels, const SampleArgs& args, int32_t r, WorkerScratch& scratch) {
  const SampleRow& params = args.rows[r];
  float* x = args.logits.row<float>(r);
  if (params.num_logprobs >= 0)
    std::memcpy(scratch.raw.get(), x, static_cast<size_t>(args.vocab_used) * sizeof(float));
  adjust(params, x, args.vocab_used);
  const Row row{kernels, params, scratch, x, args.vocab_used, kernels.clean_max(x, args.vocab_used)};
  args.tokens[r] = choose(row);
  if (params.num_logprobs >= 0) report(kernels, args, r, scratch);
}

}  // namespace whippet::cpu
