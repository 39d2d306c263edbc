#include "openai/reasoning_parser.h"

#include <algorithm>

namespace whippet::openai {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view trimmed_left(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text;
}

}  // namespace

Thinking thinking_after(std::string_view prompt) {
  prompt = prompt.substr(0, prompt.find_last_not_of(kSpace) + 1);
  if (prompt.ends_with(kThinkOpen)) return Thinking::kOpen;
  return prompt.ends_with(kThinkClose) ? Thinking::kNever : Thinking::kMay;
}

ReasoningParser::ReasoningParser(Thinking thinking)
    : state_(thinking == Thinking::kNever ? State::kAnswer : State::kBefore),
      opened_(thinking == Thinking::kOpen) {}

void ReasoningParser::push(std::string_view text, std::string& reasoning, std::string& content) {
  if (state_ == State::kAnswer) {
    content += text;
    return;
  }
  held_ += text;
  if (state_ == State::kBefore) {
    const std::string_view begun = trimmed_left(held_);
    if (begun.size() < kThinkOpen.size() && kThinkOpen.starts_with(begun)) return;
    const bool opens = begun.starts_with(kThinkOpen);
    if (opens) held_ = std::string(begun.substr(kThinkOpen.size()));
    opened_ |= opens;
    state_ = opened_ ? State::kInside : State::kAnswer;
  }
  if (state_ == State::kInside) {
    const size_t end = held_.find(kThinkClose);
    if (end == std::string::npos) {
      size_t undecided = std::min(held_.size(), kThinkClose.size() - 1);
      while (!kThinkClose.starts_with(std::string_view(held_).substr(held_.size() - undecided))) --undecided;
      think(std::string_view(held_).substr(0, held_.size() - undecided), reasoning);
      held_.erase(0, held_.size() - undecided);
      return;
    }
    think(std::string_view(held_).substr(0, end), reasoning);
    held_.erase(0, end + kThinkClose.size());
    state_ = State::kBehind;
  }
  if (state_ == State::kBehind) {
    held_ = std::string(trimmed_left(held_));
    if (held_.empty()) return;
    state_ = State::kAnswer;
  }
  content += held_;
  held_.clear();
}

void ReasoningParser::finish(std::string& reasoning, std::string& content) {
  if (state_ == State::kInside || (state_ == State::kBefore && opened_)) {
    think(held_, reasoning);
  } else if (state_ == State::kBefore) {
    content += held_;
  }
  held_.clear();
  state_ = State::kAnswer;
}

void ReasoningParser::think(std::string_view text, std::string& reasoning) {
  const size_t last = text.find_last_not_of(kSpace);
  if (last == std::string_view::npos) {
    space_ += text;
    return;
  }
  space_ += text.substr(0, last + 1);
  reasoning.append(space_, has_some_ ? 0 : space_.find_first_not_of(kSpace));
  space_ = text.substr(last + 1);
  has_some_ = true;
}

}  // namespace whippet::openai
