// What goes into an engine and what comes out: Request, RequestOutput, Event and their parts. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "whippet/sampling_params.h"

namespace whippet {

struct Message {
  std::string role;  // "system" | "user" | "assistant" | "tool"
  std::string content;
};

struct TokenLogprob {
  int32_t token_id = -1;
  float logprob = 0;
  int32_t rank = 0;                            // 1: the most likely
  std::vector<std::pair<int32_t, float>> top;  // the most likely tokens, by falling logprob
};

struct Usage {
  int32_t prompt_tokens = 0;
  int32_t completion_tokens = 0;
  int32_t cached_tokens = 0;  // of the prompt, found in the prefix cache
};

struct Timing {       // seconds on a steady clock, since submission
  double queued = 0;  // until the first step that computed for it
  double first_token = 0;
  double finished = 0;
};

// One answer of a request (`n` of them).
struct Completion {
  int32_t index = 0;
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<TokenLogprob> logprobs;  // one a token where asked for
  std::string finish_reason;           // "stop" | "length" | "abort" | "timeout" | "error"
  std::string stop_reason;  // the stop string, or the id of the stop token; empty for EOS and length
};

struct RequestOutput {
  std::vector<int32_t> prompt_token_ids;
  std::vector<TokenLogprob> prompt_logprobs;  // one a prompt token from the second on, where asked for
  std::vector<Completion> outputs;            // [n]
  Usage usage;
  Timing timing;
  std::string error;  // empty, or why this one request was refused
};

// What to answer: exactly one of prompt, prompt_token_ids, messages.
struct Request {
  std::optional<std::string> prompt;  // raw text, control tokens parsed
  std::vector<int32_t> prompt_token_ids;
  std::vector<Message> messages;        // rendered by the chat template
  std::string messages_json;            // the same as JSON, for tools and whatever else a template reads
  std::string template_variables_json;  // an object: "tools", "enable_thinking", ...
  std::string prompt_template;          // a named one, of `messages`; empty: the config's
  SamplingParams params;
  int32_t priority = 0;            // lower runs first
  double timeout_s = 0;            // from submission, queueing included; 0: none
  std::string cache_salt;          // cached beginnings are shared only among requests of the same salt
  bool parse_special = true;       // of `prompt`
  bool add_special_tokens = true;  // of `prompt`: BOS as the tokenizer asks for
};

// A piece of an answer, in order. Text is whole UTF-8 characters.
struct Event {
  uint64_t request_id = 0;
  int32_t index = 0;
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<TokenLogprob> logprobs;
  std::vector<TokenLogprob> prompt_logprobs;  // with the first event, where asked for
  bool finished = false;                      // of this answer; the fields below are set
  bool last = false;                          // no event of this request comes after it
  std::string finish_reason;
  std::string stop_reason;
  std::string error;  // of a refused or failed request, which is finished by it
  Usage usage;
  Timing timing;
};

}  // namespace whippet
