#include "engine/stop_checker.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace whippet {

StopChecker::StopChecker(const Tokenizer& tokenizer, const SamplingParams& params)
    : decoder_(tokenizer, params.skip_special_tokens, true, params.kept_special_token_ids),
      include_(params.include_stop_str_in_output) {
  for (const std::string& stop : params.stop) {
    WH_CHECK(!stop.empty());
    Automaton automaton{.stop = stop, .fallback = std::vector<int32_t>(stop.size() + 1, 0)};
    for (size_t i = 1; i < stop.size(); ++i) {
      int32_t k = automaton.fallback[i];
      while (k > 0 && stop[static_cast<size_t>(k)] != stop[i]) k = automaton.fallback[static_cast<size_t>(k)];
      automaton.fallback[i + 1] = stop[static_cast<size_t>(k)] == stop[i] ? k + 1 : 0;
    }
    automata_.push_back(std::move(automaton));
  }
}

int StopChecker::advance(char byte) {
  int best = -1;
  for (size_t a = 0; a < automata_.size(); ++a) {
    Automaton& automaton = automata_[a];
    int32_t& state = automaton.state;
    while (state > 0 && automaton.stop[static_cast<size_t>(state)] != byte) {
      state = automaton.fallback[static_cast<size_t>(state)];
    }
    if (automaton.stop[static_cast<size_t>(state)] == byte) ++state;
    if (static_cast<size_t>(state) < automaton.stop.size()) continue;
    if (best < 0 || automaton.stop.size() > automata_[static_cast<size_t>(best)].stop.size()) {
      best = static_cast<int>(a);
    }
  }
  return best;
}

bool StopChecker::push(int32_t token, bool may_stop) {
  WH_CHECK(matched_.empty() && !finished_);
  append(decoder_.push(token), may_stop);
  token_ends_.push_back(taken_ + text_.size());
  return !matched_.empty();
}

void StopChecker::push_end(int32_t token) {
  WH_CHECK(matched_.empty() && !finished_);
  if (include_) append(decoder_.push(token), false);
  token_ends_.push_back(taken_ + text_.size());
}

void StopChecker::append(const std::string& piece, bool may_stop) {
  const size_t old_size = text_.size();
  text_ += piece;
  if (!may_stop) {
    certain_ = text_.size();
    return;
  }
  for (size_t i = old_size; i < text_.size(); ++i) {
    if (const int which = advance(text_[i]); which >= 0) return end_at(i + 1, which);
  }
  int32_t held = 0;
  for (const Automaton& automaton : automata_) held = std::max(held, automaton.state);
  certain_ = std::max(certain_, text_.size() - static_cast<size_t>(held));
}

void StopChecker::end_at(size_t end, int which) {
  matched_ = automata_[static_cast<size_t>(which)].stop;
  text_.resize(include_ ? end : end - matched_.size());
  certain_ = text_.size();
}

void StopChecker::finish() {
  if (matched_.empty()) text_ += decoder_.finish();
  certain_ = text_.size();
  finished_ = true;
}

std::string StopChecker::take_text() {
  std::string taken = text_.substr(0, certain_);
  text_.erase(0, certain_);
  taken_ += std::exchange(certain_, 0);
  return taken;
}

int32_t StopChecker::take_released_tokens() {
  int32_t count = 0;
  while (!token_ends_.empty() && (finished_ || token_ends_.front() <= taken_)) {
    token_ends_.pop_front();
    ++count;
  }
  return count;
}

}  // namespace whippet
