#include "api/quality.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace whippet {
namespace {

double log_sum_exp(std::span<const float> logits) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - largest));
  return largest + std::log(sum);
}

size_t likeliest(std::span<const float> logits) {
  return static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double mean_exp(double sum, int64_t count) {
  return count == 0 ? 0 : std::exp(sum / static_cast<double>(count));
}

// The sum of log p over ids[from ..].
Result<double> log_probability(LogitsModel& model, std::span<const int32_t> ids, size_t from) {
  const auto vocab = static_cast<size_t>(model.vocab_size());
  double sum = 0;
  size_t position = 0;
  const Status status = model.forward(ids, [&](std::span<const float> rows) -> Status {
    for (size_t at = 0; at < rows.size(); at += vocab, ++position) {
      if (position + 1 < from || position + 1 >= ids.size()) continue;
      const auto row = rows.subspan(at, vocab);
      sum += row[static_cast<size_t>(ids[position + 1])] - log_sum_exp(row);
    }
    return {};
  });
  if (!status.ok()) return status.error();
  return sum;
}

}  // namespace

double Quality::perplexity() const { return mean_exp(loss, tokens); }
double Quality::reference_perplexity() const { return mean_exp(reference_loss, tokens); }

void add_position(Quality& quality, std::span<const float> logits, int32_t target,
                  std::span<const float> reference) {
  const auto at = static_cast<size_t>(target);
  const double total = log_sum_exp(logits);
  ++quality.tokens;
  quality.loss += total - logits[at];
  if (reference.empty()) return;
  WH_CHECK_EQ(reference.size(), logits.size());
  const double reference_total = log_sum_exp(reference);
  quality.reference_loss += reference_total - reference[at];
  quality.agreed += likeliest(logits) == likeliest(reference) ? 1 : 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double log_p = reference[i] - reference_total;
    quality.divergence += std::exp(log_p) * (log_p - (logits[i] - total));
  }
}

Status add_sequence(Quality& quality, LogitsModel& model, LogitsModel* reference,
                    std::span<const int32_t> ids) {
  const auto vocab = static_cast<size_t>(model.vocab_size());
  if (reference != nullptr && reference->vocab_size() != model.vocab_size())
    return make_error(Code::kInvalidArgument, "the models have vocabularies of {} and {} tokens",
                      model.vocab_size(), reference->vocab_size());
  for (size_t begin = 0; begin + 1 < ids.size();) {
    WH_ASSIGN(const std::span<const float> rows, model.rows(ids, begin));
    std::span<const float> others;
    if (reference != nullptr) {
      WH_ASSIGN(others, reference->rows(ids, begin));
    }
    const size_t count = rows.size() / vocab;
    for (size_t r = 0; r < count && begin + r + 1 < ids.size(); ++r) {
      add_position(quality, rows.subspan(r * vocab, vocab), ids[begin + r + 1],
                   others.empty() ? others : others.subspan(r * vocab, vocab));
    }
    begin += count;
  }
  return {};
}

Result<size_t> likeliest_answer(LogitsModel& model, const Choices& choices) {
  size_t best = 0;
  double most = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < choices.answers.size(); ++i) {
    std::vector<int32_t> ids = choices.prompt;
    ids.insert(ids.end(), choices.answers[i].begin(), choices.answers[i].end());
    WH_ASSIGN(const double sum, log_probability(model, ids, choices.prompt.size()));
    const double mean = sum / static_cast<double>(choices.answers[i].size());
    if (mean > most) {
      most = mean;
      best = i;
    }
  }
  return best;
}

}  // namespace whippet
