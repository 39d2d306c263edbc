// Finds stop strings in the text of an answer, across token borders, and holds back what could still become
// one. Every stop string is an automaton that has matched a prefix of itself (Knuth, Morris and Pratt 1977),
// so a byte costs one step each and the earliest end wins, the longest of those; how the text is cut into
// tokens does not matter. One per sequence, engine thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "text/stream_decoder.h"
#include "whippet/sampling_params.h"

namespace whippet {

class StopChecker {
 public:
  StopChecker(const Tokenizer& tokenizer, const SamplingParams& params);

  // Takes the next token. With may_stop false (min_tokens) nothing can match. True when a stop string is
  // complete: the answer ends here, later pushes are bugs.
  bool push(int32_t token, bool may_stop);
  // A token that ends the answer and has no text of its own (EOS, a stop token), or with it
  // (include_stop_str_in_output).
  void push_end(int32_t token);
  // No token will come: nothing is held back any more. Called once, at whatever end.
  void finish();

  // Text that is certain and has not been taken; empty after.
  std::string take_text();
  // How many of the pushed tokens have had all their text taken out, and have not been counted before.
  int32_t take_released_tokens();
  // The stop string that matched; empty before.
  const std::string& matched() const { return matched_; }

 private:
  struct Automaton {
    std::string stop;
    std::vector<int32_t> fallback;  // [size + 1] longest proper prefix that is a suffix of the first i bytes
    int32_t state = 0;              // bytes of the stop string that the text ends with
  };
  // Index of the longest stop string that is complete after this byte, or -1.
  int advance(char byte);
  void append(const std::string& piece, bool may_stop);
  void end_at(size_t end, int which);

  StreamDecoder decoder_;
  bool include_;
  std::vector<Automaton> automata_;
  std::string text_;                 // decoded and not taken
  uint64_t taken_ = 0;               // bytes of the answer before text_
  size_t certain_ = 0;               // bytes of text_ that cannot become a stop string
  std::deque<uint64_t> token_ends_;  // of each token not released: bytes of the answer once it is decoded
  bool finished_ = false;
  std::string matched_;
};

}  // namespace whippet
