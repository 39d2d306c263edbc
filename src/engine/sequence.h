// Glossary of the engine:
//   token     an id of the vocabulary; position: its index in its sequence, prompt and output counted
//   together request   one prompt and how to answer it; it has n sequences, one an answer sequence  a prompt
//   with the output drawn so far; the unit of scheduling block     block_size consecutive positions of a
//   sequence in the KV cache of every layer step      one forward over rows of many sequences; row: one token
//   of one sequence in a step planned   rows that a launched step computes; committed: the host has seen that
//   step's result pending   a token drawn by a launched step, not yet known to the host preempted blocks
//   taken away; the sequence waits and is computed again, mostly from the prefix cache
// Engine thread only, once submitted.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/event.h"
#include "engine/request.h"
#include "engine/sampler_state.h"
#include "engine/stop_checker.h"

namespace whippet {

struct ActiveRequest;
using Clock = std::chrono::steady_clock;

enum class SequenceState : uint8_t {
  kHeld,      // waits until the first answer of its request has computed the prompt that they share
  kWaiting,   // holds no blocks; new or preempted
  kRunning,   // holds blocks and has rows in nearly every step
  kFinished,  // its last event is out; holds blocks only while a launched step refers to them
};

struct Sequence {
  ActiveRequest* request = nullptr;
  int32_t index = 0;  // which of the request's answers
  SequenceState state = SequenceState::kWaiting;
  bool draining = false;  // will be preempted once no launched step refers to its blocks
  bool started = false;   // has been running before
  double urgency = 0;     // seconds; lower runs first and is preempted last
  uint64_t request_id = 0;

  std::vector<int32_t> tokens;  // prompt, then committed output; reserved for max_length
  int32_t num_prompt = 0;
  int32_t max_length = 0;      // ends with "length" when it has this many tokens
  int32_t num_planned = 0;     // positions [0, num_planned) are in the cache once launched steps are done
  int32_t num_committed = 0;   // positions [0, num_committed) are in the cache
  int32_t num_pending = 0;     // 0 or 1
  int32_t pending_logit = -1;  // where the pending token stands among its step's draws
  int32_t in_flight = 0;       // launched steps that refer to it

  std::vector<int32_t> blocks;  // block table; -1: released, or never needed, behind every layer's window
  int32_t root = -1;            // of the prefix tree: names of this sequence's blocks start here
  int32_t tip = -1;             // node of its last published block (or root); -1: none held
  int32_t num_published = 0;    // blocks [0, num_published) have been offered to the prefix tree
  int32_t num_behind = 0;       // blocks [0, num_behind) are -1

  std::vector<float> frequencies;  // [head_dim / 2] RoPE
  SamplerState sampler;
  size_t masked_length = 0;          // the sampler has the mask of the draw behind that many tokens
  std::vector<int32_t> forced;       // what its token mask leaves no choice about, behind the pending token
  std::optional<StopChecker> stops;  // where there are stop strings
  std::vector<TokenLogprob> prompt_logprobs;
  std::vector<TokenLogprob> held_logprobs;  // of tokens that are held back with their text
  int32_t stop_token = -1;                  // the stop_token_ids entry that ended it
  int32_t num_reported = 0;                 // tokens of the output that events have carried
  Clock::time_point first_token_time, last_token_time;

  // Tokens it has, pending ones included.
  int32_t length() const { return static_cast<int32_t>(tokens.size()) + num_pending; }
  int32_t num_output() const { return static_cast<int32_t>(tokens.size()) - num_prompt; }
  bool wants_prompt_logprobs() const;
};

// A request on its way through the engine.
struct ActiveRequest {
  uint64_t id = 0;
  CoreRequest asked;
  std::vector<int32_t> stop_ids;  // stop_token_ids, sorted
  std::string salt;               // names the root of its blocks
  Clock::time_point submitted;
  std::optional<Clock::time_point> deadline;
  std::optional<Clock::time_point> first_planned;    // when a step first computed for it
  int32_t num_cached = 0;                            // prompt tokens found in the prefix cache at first
  std::vector<std::unique_ptr<Sequence>> sequences;  // [n]
  int32_t num_unfinished = 0;
  int32_t in_flight = 0;  // launched rows of all its sequences
};

// Prompt logprobs are of index 0 and still incomplete: its prompt is computed row by row, without the cache.
inline bool Sequence::wants_prompt_logprobs() const {
  return index == 0 && request->asked.params.prompt_logprobs.has_value() &&
         static_cast<int32_t>(prompt_logprobs.size()) + 1 < num_prompt && num_output() == 0;
}

}  // namespace whippet
