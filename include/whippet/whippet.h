// Whippet's public C++ API: EngineConfig, SamplingParams, LLM (blocking), Engine (streaming).
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
#include "whippet/request.h"
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

// What changes from step to step, for whoever watches an engine.
struct EngineCounts {
  int32_t running = 0;  // sequences
  int32_t waiting = 0;
  uint64_t steps = 0;          // since the start, as all that follow
  uint64_t prompt_tokens = 0;  // of requests whose prompt has been computed
  uint64_t generation_tokens = 0;
  uint64_t prefix_queries = 0;  // prompt tokens looked up in the prefix cache
  uint64_t prefix_hits = 0;     // and found there
  double kv_usage = 0;          // share of the KV cache's blocks in use
};

// A model and the engine that serves it, streaming. The destructor cancels what still runs.
class Engine {
 public:
  explicit Engine(const EngineConfig& config);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  // Events come from one thread of the engine's, in order, maybe before submit returns; on_event must neither
  // block nor throw. Throws Failure where the request itself is wrong (a value out of range, a prompt that
  // does not fit).
  uint64_t submit(Request request, std::function<void(const Event&)> on_event);
  // Compiles a grammar and keeps it, so that a submit that asks for it need not wait; submit does the same
  // where it is not there. Throws Failure where it is wrong or not supported. Not from on_event.
  void prepare(const StructuredOutputs& asked) const;
  // Ends the request with finish_reason "abort" within one step. Unknown ids are ignored.
  void cancel(uint64_t request_id);
  // Runs on the thread of the events after each group of them that came together (a step's): where a server
  // sends what on_event collected. Set it before the first submit; it must neither block nor throw.
  void set_after_events(std::function<void()> after_events);

  const EngineConfig& config() const;   // what holds, with every default filled in
  EngineCounts counts() const;          // a snapshot
  std::string stats_json() const;       // of everything
  std::string metrics() const;          // Prometheus text
  std::string model_info_json() const;  // family, sizes, dtypes, default sampling, memory
  int32_t max_model_len() const;
  int32_t vocab_size() const;  // ids of prompts are below it
  // The sampling that the checkpoint asks for (generation_config.json), or the defaults.
  SamplingParams default_sampling_params() const;
  // max_tokens of a chat that says none, as the checkpoint asks for it; nullopt: the rest of the context.
  std::optional<int32_t> default_chat_tokens() const;

  std::vector<int32_t> encode(const std::string& text, bool parse_special = true,
                              bool add_special_tokens = false) const;
  std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens = true) const;
  // The bytes of one token, maybe a part of a character; empty outside the vocabulary.
  std::string token_bytes(int32_t id) const;
  // The prompt of a chat as the template renders it, and its ids.
  std::pair<std::string, std::vector<int32_t>> render(const Request& chat) const;

 private:
  friend class LLM;
  friend struct FakeEngine;  // src/api/fake_engine.h
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
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
