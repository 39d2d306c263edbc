#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "backend/philox.h"
#include "backend/reference.h"

namespace whippet::reference {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();

void adjust(std::vector<float>& x, const SampleRow& row) {
  const auto size = static_cast<int32_t>(x.size());
  for (int32_t i = 0; i < row.num_bias; ++i)
    if (row.bias_ids[i] < size) x[row.bias_ids[i]] += row.bias[i];
  for (int32_t i = 0; row.mask != nullptr && i < size; ++i)
    if ((row.mask[i / 32] >> (i % 32) & 1) == 0) x[i] = kBanned;
  for (int32_t i = 0; i < row.num_seen; ++i) {
    if (row.seen_ids[i] >= size) continue;
    float& value = x[row.seen_ids[i]];
    value = value > 0 ? value / row.repetition_penalty : value * row.repetition_penalty;
    const int32_t count = row.output_counts != nullptr ? row.output_counts[i] : 0;
    if (count > 0) value -= row.presence_penalty + row.frequency_penalty * static_cast<float>(count);
  }
}

// The finite ones of x by falling value, the lower id first among equals.
std::vector<int32_t> falling_ids(const std::vector<float>& x) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < static_cast<int32_t>(x.size()); ++i)
    if (std::isfinite(x[i])) ids.push_back(i);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) { return x[a] > x[b]; });
  return ids;
}

void report(const std::vector<float>& raw, const SampleRow& row, const SampleArgs& args, int32_t r) {
  if (row.num_logprobs < 0) return;
  const std::vector<int32_t> ids = falling_ids(raw);
  double total = 0;
  for (int32_t id : ids) total += std::exp(static_cast<double>(raw[id]) - raw[ids[0]]);
  const double log_sum = ids.empty() ? 0.0 : raw[ids[0]] + std::log(total);
  const int32_t token = args.tokens[r];
  const bool known = token >= 0 && std::isfinite(raw[token]);
  if (args.logprobs != nullptr) args.logprobs[r] = known ? static_cast<float>(raw[token] - log_sum) : kBanned;
  if (args.ranks != nullptr)
    args.ranks[r] = known ? 1 + static_cast<int32_t>(std::count_if(
                                    ids.begin(), ids.end(), [&](int32_t id) { return raw[id] > raw[token]; }))
                          : 0;
  for (int32_t i = 0; i < args.max_logprobs; ++i) {
    const bool present = i < row.num_logprobs && i < static_cast<int32_t>(ids.size());
    const int64_t at = static_cast<int64_t>(r) * args.max_logprobs + i;
    args.top_ids[at] = present ? ids[i] : -1;
    args.top_logprobs[at] = present ? static_cast<float>(raw[ids[i]] - log_sum) : kBanned;
  }
}

}  // namespace

std::vector<double> distribution(const float* logits, int32_t vocab_used, const SampleRow& row) {
  std::vector<float> x(logits, logits + vocab_used);
  adjust(x, row);
  std::vector<int32_t> ids = falling_ids(x);
  std::vector<double> probabilities(vocab_used, 0.0);
  if (ids.empty()) return probabilities;
  if (row.temperature <= 0) {
    probabilities[ids[0]] = 1;
    return probabilities;
  }
  std::vector<double> weights;  // by falling value
  for (int32_t id : ids)
    weights.push_back(std::exp((static_cast<double>(x[id]) - x[ids[0]]) / row.temperature));
  size_t kept = 1;
  while (kept < ids.size() && weights[kept] >= row.min_p) ++kept;
  if (row.top_k > 0) kept = std::min(kept, static_cast<size_t>(row.top_k));
  if (row.top_p < 1) {
    const double total = std::accumulate(weights.begin(), weights.begin() + kept, 0.0);
    double sum = weights[0];
    size_t n = 1;
    while (n < kept && sum < row.top_p * total) sum += weights[n++];
    kept = n;
  }
  const double total = std::accumulate(weights.begin(), weights.begin() + kept, 0.0);
  for (size_t i = 0; i < kept; ++i) probabilities[ids[i]] = weights[i] / total;
  return probabilities;
}

void sample(const SampleArgs& args) {
  for (int32_t r = 0; r < args.logits.rows; ++r) {
    const float* logits = args.logits.row<float>(r);
    const std::vector<double> probabilities = distribution(logits, args.vocab_used, args.rows[r]);
    const double u = uniform_draw(args.rows[r].seed, args.rows[r].position);
    int32_t token = -1;
    double sum = 0;
    for (int32_t i = 0; i < args.vocab_used; ++i) {
      if (probabilities[i] == 0) continue;
      token = i;  // the last one where rounding leaves the sum below u
      sum += probabilities[i];
      if (sum > u) break;
    }
    args.tokens[r] = token;
    report(std::vector<float>(logits, logits + args.vocab_used), args.rows[r], args, r);
  }
}

}  // namespace whippet::reference
