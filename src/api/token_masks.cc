#include "api/token_masks.h"

#include <algorithm>
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
  Mask(grammar::CompiledGrammar grammar, int32_t after, int32_t answers)
      : grammar_(std::move(grammar)), after_(after), answers_(static_cast<size_t>(answers)) {
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
    if (!answer.lost && !answer.matcher->ended()) return answer.matcher->fill(mask);
    std::ranges::fill(mask, 0u);  // nothing can be drawn, and the answer ends with an error
    return true;
  }

 private:
  grammar::CompiledGrammar grammar_;
  int32_t after_;  // the grammar holds behind this token; -1: from the beginning
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
  const bool can_end;
  grammar::GrammarCache cache;
};

TokenMasks::TokenMasks(const Tokenizer& tokenizer, int32_t vocab_used, std::vector<int32_t> eos_ids) {
  const bool can_end = !eos_ids.empty();
  auto vocabulary = [&tokenizer, vocab_used, ids = std::move(eos_ids)] {
    return vocabulary_of(tokenizer, vocab_used, ids);
  };
  impl_.reset(new Impl{tokenizer, can_end, grammar::GrammarCache(std::move(vocabulary), {})});
}

TokenMasks::~TokenMasks() = default;

Result<TokenMask> TokenMasks::make(SamplingParams& params) {
  if (!params.structured_outputs) return TokenMask();
  if (!impl_->can_end)
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
  auto mask = std::make_shared<Mask>(std::move(compiled), after, params.n);  // std::function wants to copy it
  return TokenMask([mask](int32_t choice, std::span<const int32_t> output, std::span<uint32_t> bits) {
    return mask->fill(choice, output, bits);
  });
}

}  // namespace whippet
