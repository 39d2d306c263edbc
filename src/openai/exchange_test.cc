// From events to the bytes of answers: chunks, whole bodies, and that both say the same.
#include <cmath>

#include "openai/event_testing.h"
#include "openai/testing.h"
#include "whippet/whippet.h"

namespace whippet::openai {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Answers : public CodecTest {
 protected:
  // The body or stream with its time taken out.
  static std::string timeless(std::string text) {
    const std::string key = "\"created\":";
    for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
      const size_t begin = at + key.size();
      text.replace(begin, text.find(',', begin) - begin, "0");
    }
    return text;
  }
};

constexpr const char* kHead =
    R"(data: {"id":"id","object":"chat.completion.chunk","created":0,"model":"tiny","choices":[)";
constexpr const char* kTextHead =
    R"(data: {"id":"id","object":"text_completion","created":0,"model":"tiny","choices":[)";

TEST_F(Answers, AChatAsAStream) {
  const auto exchange = chat({{"stream", true}});
  const std::string head = kHead;
  EXPECT_EQ(
      timeless(stream_of(*exchange,
                         {{piece("Hel\"lo"), piece(""), piece("\n你"), finish({.completion_tokens = 12})}})),
      head +
          R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]})" +
          "\n\n" + head +
          R"({"index":0,"delta":{"content":"Hel\"lo"},"logprobs":null,"finish_reason":null}]})" + "\n\n" +
          head + R"({"index":0,"delta":{"content":"\n你"},"logprobs":null,"finish_reason":null}]})" + "\n\n" +
          head + R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":null}]})" +
          "\n\n" + "data: [DONE]\n\n");
}

TEST_F(Answers, AChatAsAWhole) {
  const auto exchange = chat({});
  std::string out;
  exchange->on_event(0, piece("Hel\"lo"), out);
  EXPECT_FALSE(exchange->done());
  exchange->on_event(0, finish({.reason = "length", .completion_tokens = 7, .cached_tokens = 32}, "!"), out);
  EXPECT_TRUE(exchange->done());
  EXPECT_EQ(exchange->error(), std::nullopt);
  EXPECT_EQ(
      timeless(exchange->body()),
      R"({"id":"id","object":"chat.completion","created":0,"model":"tiny","choices":[{"index":0,)"
      R"("message":{"role":"assistant","content":"Hel\"lo!","refusal":null},"logprobs":null,)"
      R"("finish_reason":"length","stop_reason":null}],"usage":{"prompt_tokens":39,"completion_tokens":7,)"
      R"("total_tokens":46,"prompt_tokens_details":{"cached_tokens":32}}})");
}

TEST_F(Answers, ACompletionAsAStreamAndAsAWhole) {
  const std::string head = kTextHead;
  const auto stream = completion({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  EXPECT_EQ(
      timeless(
          stream_of(*stream, {{piece("a"), finish({.completion_tokens = 2, .stop_reason = "END"}, "b")}})),
      head + R"({"index":0,"text":"a","logprobs":null,"finish_reason":null}],"usage":null})" + "\n\n" + head +
          R"({"index":0,"text":"b","logprobs":null,"finish_reason":"stop","stop_reason":"END"}],"usage":null})" +
          "\n\n" + head +
          R"(],"usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4,)"
          R"("prompt_tokens_details":{"cached_tokens":0}}})" +
          "\n\ndata: [DONE]\n\n");
  const auto whole = completion({});
  std::string out;
  whole->on_event(0, finish({.completion_tokens = 1}, "a"), out);
  EXPECT_EQ(
      timeless(whole->body()),
      R"({"id":"id","object":"text_completion","created":0,"model":"tiny","choices":[{"index":0,"text":"a",)"
      R"("logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":2,)"
      R"("completion_tokens":1,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}})");
}

TEST_F(Answers, AStopReasonIsATextOrANumber) {
  const auto reason = [&](const json& more, const std::string& text, const std::string& stop_reason) {
    const auto exchange = completion(more);
    const json body =
        body_of(*exchange, {{finish({.completion_tokens = 1, .stop_reason = stop_reason}, text)}});
    EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
    return body["choices"][0]["stop_reason"];
  };
  EXPECT_EQ(reason({}, "x", ""), nullptr);
  EXPECT_EQ(reason({{"stop", "\n\""}}, "x", "\n\""), "\n\"");
  EXPECT_EQ(reason({{"stop_token_ids", {65}}}, "A", "65"), 65);
  EXPECT_EQ(reason({{"stop_token_ids", {65}}, {"stop", "65"}}, "65", "65"), "65") << "the text ended it";
}

TEST_F(Answers, UsageSumsOverAnswersAndCountsEachPromptOnce) {
  const auto exchange = completion({{"prompt", {"abc", "de"}}, {"n", 2}});
  const json body = body_of(
      *exchange, {{finish({.completion_tokens = 3, .last = false, .cached_tokens = 2}, "x"),
                   finish({.completion_tokens = 4, .index = 1, .cached_tokens = 3}, "y")},
                  {finish({.completion_tokens = 5, .last = false, .index = 1, .cached_tokens = 1}, "w"),
                   finish({.completion_tokens = 6}, "z")}});
  EXPECT_EQ(body["usage"], json::parse(R"({"prompt_tokens": 5, "completion_tokens": 18, "total_tokens": 23,
                                           "prompt_tokens_details": {"cached_tokens": 2}})"));
  ASSERT_EQ(body["choices"].size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(body["choices"][i]["index"], i);
    EXPECT_EQ(body["choices"][i]["text"], std::string(1, "xyzw"[i])) << "prompt by prompt, answer by answer";
  }
  EXPECT_EQ(exchange->usage().completion_tokens, 18);
}

TEST_F(Answers, UsageInEveryChunkGrows) {
  const auto exchange = chat(
      {{"stream", true}, {"stream_options", {{"include_usage", true}, {"continuous_usage_stats", true}}}});
  const auto events =
      events_of(stream_of(*exchange, {{piece("ab"), piece("c"), finish({.completion_tokens = 4})}}));
  const std::vector<int> expected = {0, 2, 3, 4, 4};
  ASSERT_EQ(events.size(), 6u);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(events[i]["usage"]["completion_tokens"], expected[i]) << i;
  EXPECT_EQ(events[4]["choices"], json::array());
}

TEST_F(Answers, EveryChoiceBeginsWithItsRole) {
  const auto exchange = chat({{"stream", true}, {"n", 3}});
  std::string out;
  exchange->begin_stream(out);
  const auto events = events_of(out);
  ASSERT_EQ(events.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(events[static_cast<size_t>(i)]["choices"][0]["index"], i);
}

TEST_F(Answers, TheFingerprintIsInEveryAnswer) {
  context_.system_fingerprint = "fp\"1";
  const auto exchange = chat({{"stream", true}});
  for (const json& event : events_of(stream_of(*exchange, {{finish({}, "x")}})))
    EXPECT_TRUE(event == "[DONE]" || event["system_fingerprint"] == "fp\"1") << event;
  EXPECT_EQ(body_of(*chat({}), {{finish({}, "x")}})["system_fingerprint"], "fp\"1");
}

TEST_F(Answers, AnEchoStandsBeforeEveryAnswer) {
  const std::vector<std::vector<Event>> events = {
      {piece("x"), piece("y", 1), finish({.last = false}), finish({.index = 1})},
      {piece("z"), finish({.last = false}), finish({.index = 1})}};
  const json more = {{"prompt", {"ab", {99, 257}}}, {"n", 2}, {"echo", true}};
  const json body = body_of(*completion(more), events);
  EXPECT_EQ(body["choices"][0]["text"], "abx");
  EXPECT_EQ(body["choices"][1]["text"], "aby");
  EXPECT_EQ(body["choices"][2]["text"], "cz") << "special tokens are skipped";
  EXPECT_EQ(body["choices"][3]["text"], "c");
}

TEST_F(Answers, AChatEchoesTheMessageThatGoesOn) {
  const json more = {
      {"messages", {{{"role", "user"}, {"content", "Hi"}}, {{"role", "assistant"}, {"content", "Hel"}}}},
      {"continue_final_message", true},
      {"echo", true}};
  EXPECT_EQ(body_of(*chat(more), {{finish({}, "lo")}})["choices"][0]["message"]["content"], "Hello");
  json streamed = more;
  streamed["stream"] = true;
  std::string text;
  for (const json& event : events_of(stream_of(*chat(streamed), {{finish({}, "lo")}})))
    if (event.is_object()) text += event["choices"][0]["delta"].value("content", "");
  EXPECT_EQ(text, "Hello");
}

TEST_F(Answers, ZeroTokensWithEchoIsThePromptAlone) {
  for (const bool stream : {false, true}) {
    const auto exchange =
        completion({{"echo", true}, {"max_tokens", 0}, {"logprobs", 0}, {"stream", stream}});
    EXPECT_EQ(exchange->requests().front().params.max_tokens, 1) << "the engine draws one";
    Event event = with_logprobs(finish({.reason = "stop", .completion_tokens = 1}, "z"));
    event.prompt_logprobs = {{.token_id = 'i', .logprob = -2, .rank = 1, .top = {}}};
    const std::string out = stream ? stream_of(*exchange, {{event}}) : body_of(*exchange, {{event}}).dump();
    const json body = stream ? events_of(out)[0] : json::parse(out);
    const json& choice = body["choices"][0];
    EXPECT_EQ(choice["text"], "Hi");
    EXPECT_EQ(choice["finish_reason"], "length");
    EXPECT_EQ(choice["logprobs"]["tokens"], json::parse(R"(["H", "i"])"));
    EXPECT_EQ(exchange->usage().completion_tokens, 0);
  }
}

TEST_F(Answers, TokenIdsWhereTheyAreAskedFor) {
  const json body = body_of(*completion({{"return_token_ids", true}}), {{piece("a"), finish({}, "b")}});
  EXPECT_EQ(body["choices"][0]["token_ids"], json::parse("[97, 98]"));
  EXPECT_EQ(body["choices"][0]["prompt_token_ids"], json::parse("[72, 105]"));
  const auto events = events_of(
      stream_of(*chat({{"return_token_ids", true}, {"stream", true}}), {{piece("a"), finish({}, "b")}}));
  EXPECT_EQ(events[0]["prompt_token_ids"].size(), 39u);
  EXPECT_EQ(events[1]["choices"][0]["token_ids"], json::parse("[97]"));
  EXPECT_EQ(events[2]["choices"][0]["token_ids"], json::parse("[98]"));
}

TEST_F(Answers, ADeadlineIsA504NeverALength) {
  const auto whole = chat({{"timeout", 2.5}});
  std::string out;
  whole->on_event(0, piece("half an ans"), out);
  whole->on_event(0, finish({.reason = "timeout"}), out);
  ASSERT_TRUE(whole->error());
  EXPECT_EQ(whole->error()->status, 504);
  EXPECT_EQ(json::parse(whole->error()->body()),
            json::parse(
                R"({"error": {"message": "the answer took longer than the request's deadline of 2.5 seconds",
                                      "type": "timeout_error", "param": null, "code": "timeout"}})"));
  const auto stream =
      chat({{"timeout", 2.5}, {"stream", true}, {"n", 2}, {"stream_options", {{"include_usage", true}}}});
  const auto events =
      events_of(stream_of(*stream, {{piece("x"), finish({.reason = "timeout", .last = false}), piece("y", 1),
                                     finish({.reason = "timeout", .index = 1})}}));
  ASSERT_EQ(events.size(), 5u) << "two roles, a piece, one error, the end";
  EXPECT_EQ(events[3]["error"]["code"], "timeout");
  EXPECT_EQ(events[4], "[DONE]");
}

TEST_F(Answers, WhatTheEngineCannotAnswerIsAnErrorWithItsReason) {
  const auto failed = [&](const std::string& reason, const std::string& error) {
    const auto exchange = chat({});
    Event event = finish({.reason = reason});
    event.error = error;
    std::string out;
    exchange->on_event(0, event, out);
    return exchange->error().value();
  };
  EXPECT_EQ(failed("error", "no token could be drawn").status, 500);
  EXPECT_EQ(failed("error", "no token could be drawn").message, "no token could be drawn");
  EXPECT_EQ(failed("abort", "").status, 503);
}

TEST_F(Answers, EnginesRefusalsAreMapped) {
  const auto error = [](const char* code, const char* message) {
    return submit_error(Failure(code, message));
  };
  EXPECT_EQ(error("invalid_argument", "top_p is 3, but must be less").param, "top_p");
  EXPECT_EQ(error("invalid_argument", "top_p is 3, but must be less").status, 400);
  EXPECT_EQ(
      error("invalid_argument", "prompt of 9 tokens and 1 make 10, more than the limit of 8 (max_model_len)")
          .code,
      "context_length_exceeded");
  EXPECT_EQ(error("unavailable", "stopping").status, 503);
  EXPECT_EQ(error("corrupt", "?").status, 500);
  EXPECT_EQ(http_error(429, "busy").type, "rate_limit_error");
  EXPECT_EQ(http_error(401, "no key", "invalid_api_key").type, "authentication_error");
  EXPECT_EQ(http_error(415, "x").type, "invalid_request_error");
  EXPECT_TRUE(json::accept(http_error(400, "bad \xff bytes \n" + std::string(9999, 'x')).body()));
  EXPECT_EQ(http_error(400, "a\nb").sse(),
            "data: "
            "{\"error\":{\"message\":\"a\\nb\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":"
            "null}}\n\n");
}

}  // namespace
}  // namespace whippet::openai
