// What an Exchange is made of: what was asked, and the answers as they grow. Internal to openai: the readers
// of both routes fill it, exchange.cc follows the events, answer_text.cc writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "openai/answer_parser.h"
#include "openai/logprob_text.h"
#include "openai/request_fields.h"

namespace whippet::openai {

// One prompt, that is one Request.
struct AskedPrompt {
  int32_t num_tokens = 0;
  std::vector<int32_t> ids = {};  // where the answer shows them
  std::string echo = {};          // what stands before its answers; empty: nothing
  std::vector<TokenLogprob> logprobs = {};
  std::optional<int32_t> cached_tokens = {};
};

// One choice.
struct Answer {
  bool started = false;
  int32_t tokens = 0;
  // Of a whole answer; in a stream empty again after each chunk.
  std::string text = {};
  AnswerParts parts = {};  // beside the text
  std::string chat_logprobs = {};
  CompletionLogprobs logprobs = {};
  std::vector<int32_t> ids = {};
  std::string finish_reason = {};
  std::string stop_reason = {};  // as JSON
  std::optional<AnswerParser> parser = {};
  size_t calls_before = 0;  // those of `parts`

  size_t num_calls() const { return calls_before + parts.calls.size(); }
};

struct Exchange::Impl {
  Impl(const Context& context, Route route, std::string id, RequestFields fields);

  // Adds a request, its prompt and params checked and complete.
  void add_prompt(std::vector<int32_t> prompt, std::string echo, SamplingParams params);
  void follow(size_t request, const Event& event);
  // Of a request that ended without an answer.
  std::optional<ApiError> failure_of(const Event& event) const;

  // What is in every chunk or body up to its choices; "{" is its first byte.
  std::string opening(std::string_view object) const;
  void append_usage(std::string& out) const;
  void append_role_chunk(size_t choice, std::string& out) const;
  void append_chunk(size_t choice, std::string& out) const;
  // Of an answer that has parts: a chunk for its text, two for each call.
  void append_parts_chunks(size_t choice, std::string& out) const;
  // {"role": "assistant", ...}
  void append_message(const Answer& answer, std::string& out) const;
  void append_whole(std::string& out) const;
  // From "logprobs" to the choice's closing brace.
  void append_choice_end(size_t choice, std::string& out) const;
  // From there to the chunk's end.
  void append_chunk_end(std::string& out) const;
  void append_ids_and_prompt(size_t choice, std::string& out) const;

  Usage usage() const;
  // Appends the text of an event to the answer, parted where it has parts.
  void add_text(Answer& answer, const Event& event) const;
  bool is_chat() const { return route == kChat; }
  size_t answers_each() const { return static_cast<size_t>(fields.params.n); }
  const AskedPrompt& prompt_of(size_t choice) const { return prompts[choice / answers_each()]; }

  const Context& context;
  const Route route;
  const std::string id;
  const RequestFields fields;
  const int64_t created;  // seconds since 1970
  const TokenNames names;
  AnswerFormat format = {};   // of a chat; set before its prompt is added
  bool prompt_only = false;   // max_tokens 0: one token is drawn and dropped
  bool has_logprobs = false;  // the answers have them
  std::vector<Request> requests;
  std::vector<AskedPrompt> prompts;
  std::vector<Answer> answers;  // [prompts, n]
  std::optional<ApiError> failure;
  size_t ended = 0;           // requests
  std::string chunk_opening;  // "data: {...,"choices":["
};

}  // namespace whippet::openai
