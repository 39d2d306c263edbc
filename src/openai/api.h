// OpenAI's protocol without a network: bodies of requests in, whippet::Request out; whippet::Event in, bytes
// of answers out. Used by serve. Nothing here throws, blocks, or trusts what comes in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "whippet/request.h"
#include "whippet/sampling_params.h"

namespace whippet {
class Engine;
class Failure;
}  // namespace whippet

namespace whippet::openai {

struct ApiError {
  int status = 400;                            // of HTTP
  std::string type = "invalid_request_error";  // OpenAI's kinds
  std::string code;                            // "context_length_exceeded", ...; empty: null
  std::string param;                           // the field, "messages[1].content"; empty: null
  std::string message;

  std::string body() const;  // {"error": {...}}
  std::string sse() const;   // the same as one event of a stream: "data: {...}\n\n"
};
template <class T>
using Outcome = std::variant<T, ApiError>;

// What an HTTP status says in OpenAI's terms: 401, 403, 404, 413, 415, 429, 500, 503, 504, ...
ApiError http_error(int status, std::string message, std::string code = "");
// Why Engine::submit refused a request.
ApiError submit_error(const Failure& failure);

// What the codec knows of the server and its model; made once, outlives every Exchange. The functions are
// called from any thread and may throw Failure. Prompt templates are the engine's
// (EngineConfig::prompt_template and prompt_template_dir); a request names one.
struct Context {
  std::vector<std::string> served_names;  // at least one; the first is shown where none was asked for
  int64_t created = 0;                    // seconds since 1970: of the model cards
  int32_t max_model_len = 0;
  int32_t vocab_size = 0;                     // token ids are below it
  SamplingParams default_sampling = {};       // of what a request does not say, but for max_tokens
  std::optional<int32_t> default_max_tokens;  // of chats; none: the rest of the context
  std::string chat_template_kwargs_json;      // an object, under the request's own; may be empty
  bool strict_fields = false;                 // a field that is not known is a 400
  std::string tool_call_parser = "auto";      // or a ToolFormat's name, or "none": calls stay text
  bool auto_tool_choice = true;               // tools may be sent without a choice that forces a call
  std::string reasoning_parser = "auto";      // "none", "qwen3", "deepseek_r1" (answers begin with thinking)
  bool knows_thinking = false;                // the vocabulary has <think> and </think>: what "auto" goes by
  double max_timeout_s = 0;        // of a request, and what it gets where it asks for none; 0: none
  std::string system_fingerprint;  // in every answer; empty: none

  std::function<std::vector<int32_t>(const std::string& text, bool parse_special, bool add_special)> encode;
  std::function<std::string(const std::vector<int32_t>& ids, bool skip_special)> decode;
  std::function<std::pair<std::string, std::vector<int32_t>>(const Request& chat)> render;
  std::function<std::string(int32_t id)> token_bytes;
  std::function<void(const StructuredOutputs& asked)> prepare_grammar;  // may take a while; may be empty
};
// The parts of it that the engine knows, which must outlive the result. The rest are the server's flags.
Context make_context(const Engine& engine);

// One accepted request: what to submit, and how its answer is written. One thread at a time.
class Exchange {
 public:
  struct Impl;
  explicit Exchange(std::unique_ptr<Impl> impl);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  std::vector<Request>& requests();  // one a prompt, checked; move them into Engine::submit in order
  bool stream() const;
  const std::string& model() const;                        // the name that was asked for
  const std::vector<std::string>& ignored_fields() const;  // what the body has and Whippet does not know
  Usage usage() const;                                     // so far, of all requests together

  // A stream is begin_stream, on_event for every event, end_stream. Each appends whole "data: ...\n\n" events
  // to `out`, maybe none. A request that failed becomes one error event, after which on_event adds nothing.
  void begin_stream(std::string& out);
  void on_event(size_t request_index, const Event& event, std::string& out);
  void end_stream(std::string& out);

  // Not streaming: on_event gathers and leaves `out` alone; then body() is the whole answer, unless error()
  // says why there is none (504 for a deadline).
  std::string body() const;
  std::optional<ApiError> error() const;
  bool done() const;  // the last event of every request has been here

 private:
  std::unique_ptr<Impl> impl_;
};

// `id` is the answer's "id": "chatcmpl-...", "cmpl-...". Text of prompts is encoded here, so that what does
// not fit is refused with its numbers; the cost is the tokenizer's.
Outcome<std::unique_ptr<Exchange>> parse_chat(const Context& context, std::string_view body, std::string id);
Outcome<std::unique_ptr<Exchange>> parse_completion(const Context& context, std::string_view body,
                                                    std::string id);

// Bodies of /v1/models, /v1/models/{id}, /tokenize and /detokenize.
std::string models_body(const Context& context);
Outcome<std::string> model_body(const Context& context, std::string_view id);
Outcome<std::string> tokenize(const Context& context, std::string_view body);
Outcome<std::string> detokenize(const Context& context, std::string_view body);

}  // namespace whippet::openai
