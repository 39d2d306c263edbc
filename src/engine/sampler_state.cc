#include "engine/sampler_state.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/math.h"
#include "engine/hash.h"

namespace whippet {

void SeenTokens::reserve(int32_t num_tokens) {
  ids_.reserve(static_cast<size_t>(num_tokens));
  counts_.reserve(static_cast<size_t>(num_tokens));
  table_.assign(std::bit_ceil(2 * static_cast<size_t>(num_tokens) + 2), -1);
}

void SeenTokens::add(int32_t token, bool output) {
  size_t i = hash_mix(static_cast<uint64_t>(token), 0) & (table_.size() - 1);
  while (table_[i] >= 0 && ids_[static_cast<size_t>(table_[i])] != token) i = (i + 1) & (table_.size() - 1);
  if (table_[i] < 0) {
    table_[i] = static_cast<int32_t>(ids_.size());
    ids_.push_back(token);
    counts_.push_back(0);
  }
  counts_[static_cast<size_t>(table_[i])] += output;
}

SamplerState::SamplerState(const SamplingParams& params, uint64_t seed, int32_t choice,
                           std::span<const int32_t> prompt, std::span<const int32_t> banned_early,
                           int32_t max_output, int32_t vocab_used, bool with_token_mask)
    : min_tokens_(params.min_tokens) {
  base_.temperature = params.temperature;
  base_.top_p = params.top_p;
  base_.min_p = params.min_p;
  base_.top_k = std::max(params.top_k, 0);
  base_.repetition_penalty = params.repetition_penalty;
  base_.presence_penalty = params.presence_penalty;
  base_.frequency_penalty = params.frequency_penalty;
  base_.num_logprobs = params.logprobs.value_or(-1);
  base_.seed = choice == 0 ? seed : hash_mix(seed, static_cast<uint64_t>(choice));
  penalties_ =
      params.repetition_penalty != 1 || params.presence_penalty != 0 || params.frequency_penalty != 0;
  if (penalties_) {
    seen_.reserve(std::min(static_cast<int32_t>(prompt.size()) + max_output, vocab_used));
    for (const int32_t token : prompt) seen_.add(token, false);
  }
  for (const auto& [id, value] : params.logit_bias) {
    bias_ids_.push_back(id);
    bias_.push_back(value);
  }
  num_bias_ = static_cast<int32_t>(bias_ids_.size());
  if (min_tokens_ > 0) {
    bias_ids_.insert(bias_ids_.end(), banned_early.begin(), banned_early.end());
    bias_.resize(bias_ids_.size(), -std::numeric_limits<float>::infinity());
  }
  const size_t words = static_cast<size_t>(ceil_div(vocab_used, 32));
  if (params.allowed_token_ids || !params.banned_token_ids.empty()) {
    own_mask_.assign(words, params.allowed_token_ids ? 0u : ~0u);
    for (const int32_t id : params.allowed_token_ids.value_or(std::vector<int32_t>{})) {
      own_mask_[static_cast<size_t>(id / 32)] |= 1u << (id % 32);
    }
    for (const int32_t id : params.banned_token_ids) {
      own_mask_[static_cast<size_t>(id / 32)] &= ~(1u << (id % 32));
    }
  }
  if (with_token_mask) mask_.assign(words, ~0u);
  if (vocab_used % 32 != 0) last_word_ = (1u << (vocab_used % 32)) - 1;
}

SampleRow SamplerState::row(int64_t position, int32_t num_output) const {
  SampleRow row = base_;
  row.position = position;
  if (penalties_) {
    row.num_seen = static_cast<int32_t>(seen_.ids().size());
    row.seen_ids = seen_.ids().data();
    row.output_counts = seen_.output_counts();
  }
  row.num_bias = num_output < min_tokens_ && !must_end_ ? static_cast<int32_t>(bias_ids_.size()) : num_bias_;
  row.bias_ids = bias_ids_.data();
  row.bias = bias_.data();
  if (mask_used_) {
    row.mask = mask_.data();
  } else if (!own_mask_.empty()) {
    row.mask = own_mask_.data();
  }
  return row;
}

void SamplerState::accept(int32_t token) {
  if (penalties_) seen_.add(token, true);
}

std::span<uint32_t> SamplerState::open_mask() {
  std::ranges::fill(mask_, ~0u);
  return mask_;
}

void SamplerState::close_mask(bool use) {
  mask_used_ = use;
  must_end_ = false;
  if (!use) return;
  for (size_t i = 0; i < own_mask_.size(); ++i) mask_[i] &= own_mask_[i];
  mask_.back() &= last_word_;
  if (min_tokens_ > 0) must_end_ = only_ends();
}

void SamplerState::mask_all_but(int32_t token) {
  std::ranges::fill(mask_, 0u);
  mask_[static_cast<size_t>(token / 32)] = 1u << (token % 32);
  mask_used_ = true;
}

int32_t SamplerState::only_allowed() const {
  if (!mask_used_) return -1;
  const auto is_set = [](uint32_t word) { return word != 0; };
  const auto first = std::ranges::find_if(mask_, is_set);
  if (first == mask_.end() || !std::has_single_bit(*first)) return -1;
  if (std::find_if(first + 1, mask_.end(), is_set) != mask_.end()) return -1;
  return static_cast<int32_t>(first - mask_.begin()) * 32 + std::countr_zero(*first);
}

bool SamplerState::only_ends() const {
  std::vector<uint32_t> rest = mask_;  // min_tokens beside a grammar is rare enough to allocate
  bool any = false;
  for (size_t i = static_cast<size_t>(num_bias_); i < bias_ids_.size(); ++i) {
    uint32_t& word = rest[static_cast<size_t>(bias_ids_[i] / 32)];
    const uint32_t bit = 1u << (bias_ids_[i] % 32);
    any |= (word & bit) != 0;
    word &= ~bit;
  }
  return any && std::ranges::all_of(rest, [](uint32_t word) { return word == 0; });
}

SampleRow forced_row(const int32_t* token, const float* big, int32_t num_logprobs) {
  SampleRow row;
  row.num_logprobs = num_logprobs;
  row.num_bias = 1;
  row.bias_ids = token;
  row.bias = big;
  return row;
}

}  // namespace whippet
