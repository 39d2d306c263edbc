// What the codec's tests share: bodies in, and events made by hand.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "openai/fake_context.h"

namespace whippet::openai {

using nlohmann::json;

class CodecTest : public testing::Test {
 protected:
  // A chat of one message, or a completion of "Hi", with the fields of `more` over it.
  static json chat_body(const json& more = json::object()) {
    json body = {{"model", "tiny"}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
    if (!more.is_null()) body.update(more);  // {} is null
    return body;
  }
  static json prompt_body(const json& more = json::object()) {
    json body = {{"model", "tiny"}, {"prompt", "Hi"}};
    if (!more.is_null()) body.update(more);  // {} is null
    return body;
  }

  // nullptr: refused, and error_ says why.
  std::unique_ptr<Exchange> chat(const json& more) {
    return parsed(parse_chat(context_, chat_body(more).dump(), "id"));
  }
  std::unique_ptr<Exchange> completion(const json& more) {
    return parsed(parse_completion(context_, prompt_body(more).dump(), "id"));
  }
  // The parameters of one that must be taken.
  SamplingParams chat_params(const json& more) { return params(chat(more)); }
  SamplingParams completion_params(const json& more) { return params(completion(more)); }
  // "status param code: message" of one that must be refused.
  std::string chat_error(const json& more) { return refusal(chat(more)); }
  std::string completion_error(const json& more) { return refusal(completion(more)); }
  // The prompt as text.
  std::string prompt_of(const Exchange* exchange, size_t i = 0) {
    if (exchange == nullptr) return "error: " + error_.message;
    return context_.decode(const_cast<Exchange*>(exchange)->requests().at(i).prompt_token_ids, false);
  }

  std::string shown_error() const {
    return std::to_string(error_.status) + " " + error_.param + " " + error_.code + ": " + error_.message;
  }
  std::unique_ptr<Exchange> parsed(Outcome<std::unique_ptr<Exchange>> outcome) {
    if (auto* error = std::get_if<ApiError>(&outcome)) {
      error_ = *error;
      return nullptr;
    }
    return std::get<0>(std::move(outcome));
  }

  Context context_ = fake_context();
  ApiError error_;

 private:
  SamplingParams params(std::unique_ptr<Exchange> exchange) {
    EXPECT_NE(exchange, nullptr) << error_.message;
    return exchange == nullptr ? SamplingParams() : exchange->requests().front().params;
  }
  std::string refusal(const std::unique_ptr<Exchange>& exchange) {
    return exchange == nullptr ? shown_error() : "it was taken";
  }
};

// A piece of an answer: every byte of the text a token.
inline Event piece(const std::string& text, int32_t index = 0) {
  Event event;
  event.index = index;
  event.text = text;
  for (const char byte : text) event.token_ids.push_back(static_cast<unsigned char>(byte));
  return event;
}
struct Ending {
  std::string reason = "stop";
  int32_t completion_tokens = 0;
  bool last = true;
  int32_t index = 0;
  std::string stop_reason = "";
  int32_t cached_tokens = 0;
};
inline Event finish(const Ending& ending, const std::string& text = "") {
  Event event = piece(text, ending.index);
  event.finished = true;
  event.last = ending.last;
  event.finish_reason = ending.reason;
  event.stop_reason = ending.stop_reason;
  event.usage = {.prompt_tokens = 0,
                 .completion_tokens = ending.completion_tokens,
                 .cached_tokens = ending.cached_tokens};
  return event;
}
// Gives every token the log-probability -1 and the tokens at the top that are named.
inline Event with_logprobs(Event event, const std::vector<std::pair<int32_t, float>>& top = {}) {
  for (const int32_t id : event.token_ids)
    event.logprobs.push_back({.token_id = id, .logprob = -1, .rank = 1, .top = top});
  return event;
}

// The events of a stream, each parsed; "[DONE]" as a string.
inline std::vector<json> events_of(const std::string& stream) {
  std::vector<json> events;
  for (size_t at = 0; at < stream.size();) {
    const size_t end = stream.find("\n\n", at);
    EXPECT_NE(end, std::string::npos);
    if (end == std::string::npos) break;
    std::string line = stream.substr(at, end - at);
    EXPECT_TRUE(line.starts_with("data: ")) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    line.erase(0, 6);
    events.push_back(line == "[DONE]" ? json(line) : json::parse(line, nullptr, false));
    EXPECT_FALSE(events.back().is_discarded()) << line;
    at = end + 2;
  }
  return events;
}

// A whole stream of an exchange; request i's events are events[i].
inline std::string stream_of(Exchange& exchange, const std::vector<std::vector<Event>>& events) {
  std::string out;
  exchange.begin_stream(out);
  for (size_t i = 0; i < events.size(); ++i)
    for (const Event& event : events[i]) exchange.on_event(i, event, out);
  EXPECT_TRUE(exchange.done());
  exchange.end_stream(out);
  return out;
}
inline json body_of(Exchange& exchange, const std::vector<std::vector<Event>>& events) {
  std::string out;
  for (size_t i = 0; i < events.size(); ++i)
    for (const Event& event : events[i]) exchange.on_event(i, event, out);
  EXPECT_TRUE(exchange.done());
  EXPECT_EQ(out, "");
  return json::parse(exchange.body());
}

}  // namespace whippet::openai
