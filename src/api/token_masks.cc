#include "api/token_masks.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "grammar/grammar_cache.h"

namespace whippet {
namespace {

// One answer: how much of its output the grammar has seen. Only the engine thread touches it once submitted.
struct Answer {
  std::optional<grammar::GrammarMatcher> matcher;  // from the first token on that it holds for
  size_t seen = 0;
  bool lost = false;  // the output is none of the grammar's
};

class Mask {
 public:
  Mask(grammar::CompiledGrammar grammar, int32_t after, int32_t answers,
       std::shared_ptr<const std::vector<int32_t>> ends)
      : grammar_(std::move(grammar)),
        after_(after),
        ends_(std::move(ends)),
        answers_(static_cast<size_t>(answers)) {
    if (after_ >= 0) return;
    for (Answer& answer : answers_) answer.matcher.emplace(grammar_.start());
  }

  bool fill(int32_t choice, std::span<const int32_t> output, std::span<uint32_t> mask) {
    Answer& answer = answers_[static_cast<size_t>(choice)];
    for (; answer.seen < output.size(); ++answer.seen) {
      const int32_t token = output[answer.seen];
      if (answer.matcher) {
        answer.lost |= !answer.matcher->accept(token);
      } else if (token == after_) {
        answer.matcher.emplace(grammar_.start());
      }
    }
    if (!answer.matcher) return false;
    if (!answer.lost && !answer.matcher->ended()) {
      const bool narrows = answer.matcher->fill(mask);
      if (narrows) choose_end(mask);
      return narrows;
    }
    std::ranges::fill(mask, 0u);  // nothing can be drawn, and the answer ends with an error
    return true;
  }

 private:
  // Where nothing but the end may come, one token that ends is as good as another: the first, so that there
  // is no choice and no step to draw it.
  void choose_end(std::span<uint32_t> mask) const {
    size_t allowed = 0, ending = 0;
    for (const uint32_t word : mask)
      if ((allowed += static_cast<size_t>(std::popcount(word))) > ends_->size()) return;
    int32_t first = -1;
    for (const int32_t id : *ends_) {
      if ((mask[static_cast<size_t>(id / 32)] >> (id % 32) & 1) == 0) continue;
      if (ending++ == 0) first = id;
    }
    if (ending < 2 || ending != allowed) return;
    std::ranges::fill(mask, 0u);
    mask[static_cast<size_t>(first / 32)] = 1u << (first % 32);
  }

  grammar::CompiledGrammar grammar_;
  int32_t after_;  // the grammar holds behind this token; -1: from the beginning
  std::shared_ptr<const std::vector<int32_t>> ends_;
  std::vector<Answer> answers_;
};

grammar::GrammarVocabulary vocabulary_of(const Tokenizer& tokenizer, int32_t size,
                                         std::vector<int32_t> eos_ids) {
  grammar::GrammarVocabulary words{.tokens = {}, .stop_ids = std::move(eos_ids)};
  words.tokens.reserve(static_cast<size_t>(size));
  for (int32_t id = 0; id < size; ++id)
    words.tokens.emplace_back(tokenizer.is_special(id) ? std::string_view() : tokenizer.token_bytes(id));
  return words;
}

}  // namespace

struct TokenMasks::Impl {
  const Tokenizer& tokenizer;
  const std::shared_ptr<const std::vector<int32_t>> ends;
  grammar::GrammarCache cache;
};

TokenMasks::TokenMasks(const Tokenizer& tokenizer, int32_t vocab_used, std::vector<int32_t> eos_ids) {
  std::erase_if(eos_ids, [vocab_used](int32_t id) { return id < 0 || id >= vocab_used; });
  const auto ends = std::make_shared<const std::vector<int32_t>>(eos_ids);
  auto vocabulary = [&tokenizer, vocab_used, ids = std::move(eos_ids)] {
    return vocabulary_of(tokenizer, vocab_used, ids);
  };
  impl_.reset(new Impl{tokenizer, ends, grammar::GrammarCache(std::move(vocabulary), {})});
}

TokenMasks::~TokenMasks() = default;

Result<TokenMask> TokenMasks::make(SamplingParams& params) {
  if (!params.structured_outputs) return TokenMask();
  if (impl_->ends->empty())
    return make_error(Code::kUnsupported, "structured_outputs: the model has no token that ends an answer");
  int32_t after = -1;
  if (const std::string& text = params.structured_outputs->after; !text.empty()) {
    const std::optional<int32_t> id = impl_->tokenizer.find(text);
    if (!id)
      return make_error(Code::kInvalidArgument, "structured_outputs.after: the model has no token '{}'",
                        text);
    after = *id;
  }
  WH_ASSIGN(grammar::CompiledGrammar compiled, impl_->cache.get(*params.structured_outputs));
  params.ignore_eos = false;
  auto mask = std::make_shared<Mask>(std::move(compiled), after, params.n,
                                     impl_->ends);  // std::function wants to copy it
  return TokenMask([mask](int32_t choice, std::span<const int32_t> output, std::span<uint32_t> bits) {
    return mask->fill(choice, output, bits);
  });
}

}  // namespace whippet
