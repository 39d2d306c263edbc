// What sampling remembers of one sequence, and the SampleRow that each of its draws is told: penalties over
// the tokens seen, biases, bans, masks. Engine thread; nothing allocates after the constructor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/views.h"
#include "whippet/sampling_params.h"

namespace whippet {

// The distinct tokens of a sequence with how often each stands in its output: an open-addressed table.
class SeenTokens {
 public:
  void reserve(int32_t num_tokens);
  void add(int32_t token, bool output);
  std::span<const int32_t> ids() const { return ids_; }
  const int32_t* output_counts() const { return counts_.data(); }

 private:
  std::vector<int32_t> ids_, counts_;
  std::vector<int32_t> table_;  // [a power of two] index into ids_, or -1
};

class SamplerState {
 public:
  SamplerState() = default;
  // Choice i > 0 of a request draws with hash(seed, i). `banned_early` are the ids that end an answer, banned
  // until it has min_tokens. with_token_mask: the sequence brings a mask of its own at each draw.
  SamplerState(const SamplingParams& params, uint64_t seed, int32_t choice, std::span<const int32_t> prompt,
               std::span<const int32_t> banned_early, int32_t max_output, int32_t vocab_used,
               bool with_token_mask);

  // The draw of the token at `position`, with `num_output` tokens drawn before.
  SampleRow row(int64_t position, int32_t num_output) const;
  // A token of the output has become known.
  void accept(int32_t token);

  // For a token mask: all ones, to be narrowed by the hook ...
  std::span<uint32_t> open_mask();
  // ... and joined with the request's own allowed and banned ids.
  void close_mask(bool use);
  // The mask allows this token and no other.
  void mask_all_but(int32_t token);
  // The only token that the mask of the next draw allows; -1: there is a choice, or nothing to choose from.
  int32_t only_allowed() const;
  // The mask of the next draw allows nothing but the end of the answer: it comes whatever min_tokens says.
  bool must_end() const { return must_end_; }

 private:
  bool only_ends() const;

  SampleRow base_;
  int32_t min_tokens_ = 0;
  bool penalties_ = false;
  SeenTokens seen_;
  std::vector<int32_t> bias_ids_;  // logit_bias, then the ids banned early
  std::vector<float> bias_;
  int32_t num_bias_ = 0;            // without the ids banned early
  std::vector<uint32_t> own_mask_;  // allowed_token_ids without banned_token_ids; empty: everything
  std::vector<uint32_t> mask_;      // of the next draw, where there is a token mask
  uint32_t last_word_ = ~0u;        // the ids of its last word that the vocabulary has
  bool mask_used_ = false;
  bool must_end_ = false;
};

// A row that draws `token` for certain, for its logprob and rank: prompt_logprobs. `big` holds the bias.
SampleRow forced_row(const int32_t* token, const float* big, int32_t num_logprobs);

}  // namespace whippet
