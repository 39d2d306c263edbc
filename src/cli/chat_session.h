// A conversation with one engine: its messages, how much of the context they take, and asking.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "openai/reasoning_parser.h"
#include "whippet/whippet.h"

namespace whippet {

struct ChatAnswer {
  std::string text;
  std::string thinking;  // before the text; not kept with the conversation
  std::string finish_reason;
  Usage usage;
  Timing timing;
};

class ChatSession {
 public:
  // template_variables: a JSON object, or empty. The engine must outlive the session.
  ChatSession(Engine& engine, SamplingParams params, std::string system, std::string template_variables);

  // What comes of an answer, piece by piece; an error ends it.
  struct Sinks {
    std::function<Status(const std::string&)> on_text, on_thinking;
  };
  // Sends a message and waits for the answer, whose pieces go to the sinks as they come. Where stop() says
  // true (asked a few dozen times a second) the answer ends early. Both turns are kept, an answer that was
  // stopped with what it has; after an error nothing is.
  Result<ChatAnswer> ask(const std::string& message, const Sinks& sinks, const std::function<bool()>& stop);

  void reset() { turns_.clear(); }
  void set_system(std::string system) { system_ = std::move(system); }
  const std::string& system() const { return system_; }
  // What answers must look like from here on; unset: anything.
  void set_structured(std::optional<StructuredOutputs> asked) {
    params_.structured_outputs = std::move(asked);
  }
  bool structured() const { return params_.structured_outputs.has_value(); }
  bool empty() const { return turns_.empty(); }
  size_t num_turns() const { return turns_.size() / 2; }

  // Tokens of the conversation with `next` as its last message (empty: without), and what fits.
  Result<int32_t> tokens(const std::string& next, size_t without_oldest = 0) const;
  int32_t max_tokens() const { return engine_.max_model_len(); }
  // How many of the oldest turns must go so that `next` fits with room for an answer; kInvalidArgument where
  // it does not even alone.
  Result<size_t> turns_too_many(const std::string& next) const;
  void drop_oldest(size_t turns);

  // {"messages": [...]}: what `whippet generate --jsonl` and `whippet render --jsonl` take.
  std::string to_json() const;

 private:
  std::vector<Message> messages(const std::string& next, size_t without_oldest) const;
  Request request(const std::string& next, size_t without_oldest) const;
  Result<openai::Thinking> thinking_of(Request& asked) const;

  Engine& engine_;
  SamplingParams params_;
  std::string system_;
  std::string template_variables_;
  std::vector<Message> turns_;  // user, assistant, user, assistant, ...
};

}  // namespace whippet
