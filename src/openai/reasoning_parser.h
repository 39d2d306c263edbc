// Parts the thinking of an answer, <think>...</think> at its beginning, from what follows, as it streams.
// White space around the thinking belongs to neither. How the text is cut into pieces does not matter. Used
// by openai and by the terminal's chat; one an answer, one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace whippet::openai {

constexpr std::string_view kThinkOpen = "<think>";
constexpr std::string_view kThinkClose = "</think>";

enum class Thinking : uint8_t {
  kNever,  // all is answer
  kMay,    // the answer may open it
  kOpen,   // the prompt has, or the model begins with it unasked
};

// Whether an answer to this prompt may begin with thinking: templates that open it, or close it at once, say
// so at their end.
Thinking thinking_after(std::string_view prompt);

class ReasoningParser {
 public:
  explicit ReasoningParser(Thinking thinking);

  // Appends what `text` makes certain.
  void push(std::string_view text, std::string& reasoning, std::string& content);
  // The answer has ended; thinking that was not closed is all thinking.
  void finish(std::string& reasoning, std::string& content);

  // The thinking may go on, or has not begun yet.
  bool thinking() const { return state_ == State::kInside || state_ == State::kBefore; }
  bool opened() const { return opened_; }  // by the prompt, or by what was pushed

 private:
  enum class State : uint8_t { kBefore, kInside, kBehind, kAnswer };

  void think(std::string_view text, std::string& reasoning);

  State state_;
  bool opened_;
  bool has_some_ = false;  // thinking that is no white space
  std::string held_;       // undecided
  std::string space_;      // of the thinking, if more of it follows
};

}  // namespace whippet::openai
