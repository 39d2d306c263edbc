// What the engine answers: pieces of answers, in order, pushed once a step to whoever streams them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "whippet/request.h"  // TokenLogprob, Usage, Timing

namespace whippet {

enum class FinishReason : uint8_t { kNone, kStop, kLength, kAbort, kTimeout, kError };

// "stop", "length", "abort", "timeout", "error"; "" for kNone.
constexpr const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAbort:
      return "abort";
    case FinishReason::kTimeout:
      return "timeout";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

// A piece of one answer. The token ids of an answer's events add up to its usage.completion_tokens, and its
// logprobs (where asked for) stand beside them one for one. EOS and stop tokens are among them.
struct CoreEvent {
  uint64_t request_id = 0;
  int32_t index = 0;  // which of the request's n answers
  FinishReason finish = FinishReason::kNone;
  // An answer with stop strings is decoded by the engine: `text` is its text, whole characters, without what
  // could still become a stop string; token ids are held back with their text. Otherwise false, and text is
  // the reader's work (StreamDecoder over token_ids).
  bool has_text = false;
  std::vector<int32_t> token_ids;
  std::string text;
  std::vector<TokenLogprob> logprobs;         // [token_ids] or empty
  std::vector<TokenLogprob> prompt_logprobs;  // with the first event of index 0, where asked for
  // With the last event of the answer (finish != kNone):
  bool last_of_request = false;  // no event of this request comes after it
  int32_t stop_token = -1;       // the stop_token_ids entry that ended it; EOS leaves -1
  std::string stop_string;       // the stop string that ended it
  std::string error;             // for kError
  Usage usage;                   // completion_tokens of this answer alone
  Timing timing;
};

}  // namespace whippet
