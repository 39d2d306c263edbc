// Whippet's public C++ API: EngineConfig, SamplingParams, LLM (blocking), Engine (streaming), Tokenizer.
// Names and meanings are vLLM's where they mean the same. Plain standard C++20; nothing of the inside shows.
// Errors that the outside can cause are thrown as whippet::Failure; everything is safe from any thread unless
// it says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "whippet/config.h"
#include "whippet/sampling_params.h"

namespace whippet {

// What the outside did wrong; what() is a sentence to act on, code() one of code_name()'s words.
class Failure : public std::runtime_error {
 public:
  Failure(std::string code, const std::string& message)
      : std::runtime_error(message), code_(std::move(code)) {}
  const std::string& code() const { return code_; }

 private:
  std::string code_;
};

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
  SamplingParams params;
  int32_t priority = 0;            // lower runs first
  double timeout_s = 0;            // from submission, queueing included; 0: none
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
  bool finished = false;  // of this answer; the fields below are set
  std::string finish_reason;
  std::string stop_reason;
  std::string error;  // of a refused or failed request, which is finished by it
  Usage usage;
  Timing timing;
};

class Tokenizer;

// A model and the engine that serves it, streaming. The destructor cancels what still runs.
class Engine {
 public:
  explicit Engine(const EngineConfig& config);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  // Events come from one thread of the engine's, in order; on_event must not block. Throws Failure where the
  // request itself is wrong (a value out of range, a prompt that does not fit).
  uint64_t submit(Request request, std::function<void(const Event&)> on_event);
  // Ends the request with finish_reason "abort" within one step. Unknown ids are ignored.
  void cancel(uint64_t request_id);

  const EngineConfig& config() const;   // what holds, with every default filled in
  std::string stats_json() const;       // a snapshot
  std::string metrics() const;          // Prometheus text
  std::string model_info_json() const;  // family, sizes, dtypes, default sampling, memory
  int32_t max_model_len() const;
  // The sampling that the checkpoint asks for (generation_config.json), or the defaults.
  SamplingParams default_sampling_params() const;

  std::vector<int32_t> encode(const std::string& text, bool parse_special = true,
                              bool add_special_tokens = false) const;
  std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens = true) const;
  // The prompt of a chat as the template renders it, and its ids.
  std::pair<std::string, std::vector<int32_t>> render(const Request& chat) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Blocking calls over an Engine, for scripts and batch work.
class LLM {
 public:
  explicit LLM(const EngineConfig& config);
  ~LLM();
  LLM(LLM&&) noexcept;
  LLM& operator=(LLM&&) noexcept;

  // All prompts together, answers in the order of the prompts; a refused one carries its error. progress
  // draws a bar on a terminal.
  std::vector<RequestOutput> generate(const std::vector<std::string>& prompts, const SamplingParams& params,
                                      bool progress = true);
  std::vector<RequestOutput> generate(std::vector<Request> requests, bool progress = true);
  RequestOutput chat(const std::vector<Message>& messages, const SamplingParams& params);

  Engine& engine();

 private:
  std::unique_ptr<Engine> engine_;
};

// "0.1.0 (1a2b3c4d)".
std::string version();

}  // namespace whippet
