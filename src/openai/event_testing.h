// Events made by hand, and what an exchange makes of them.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "openai/api.h"

namespace whippet::openai {

using nlohmann::json;

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
