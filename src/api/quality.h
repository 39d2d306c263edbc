// How well a model predicts a text, and how far it is from another: perplexity, Kullback-Leibler divergence,
// agreement of the likeliest token. For `whippet eval` and the quantizer's report. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/logits_model.h"
#include "base/error.h"

namespace whippet {

struct Quality {
  int64_t tokens = 0;     // predicted ones
  double loss = 0;        // sum of -log p(token), nats
  double divergence = 0;  // sum over positions of KL(reference || model), nats
  int64_t agreed = 0;     // positions where the likeliest token is the reference's
  double reference_loss = 0;

  double perplexity() const;
  double reference_perplexity() const;
  double mean_divergence() const { return tokens == 0 ? 0 : divergence / static_cast<double>(tokens); }
  double agreement() const {
    return tokens == 0 ? 0 : static_cast<double>(agreed) / static_cast<double>(tokens);
  }
};

// One position: the next token is `target`. reference: the other model's logits, or empty.
void add_position(Quality& quality, std::span<const float> logits, int32_t target,
                  std::span<const float> reference);

// All positions of a sequence but the last predict the token that follows. reference: nullptr, or a model of
// the same vocabulary. Adds to `quality`.
Status add_sequence(Quality& quality, LogitsModel& model, LogitsModel* reference,
                    std::span<const int32_t> ids);

// A question with several answers, one of which is right.
struct Choices {
  std::vector<int32_t> prompt;
  std::vector<std::vector<int32_t>> answers;  // what follows the prompt
  size_t right = 0;
};
// The answer that the model holds likeliest, by log-probability a token.
Result<size_t> likeliest_answer(LogitsModel& model, const Choices& choices);

}  // namespace whippet
