// Answers with thinking and calls, from events to bytes, streamed and whole.
#include <map>
#include <set>

#include "openai/event_testing.h"
#include "openai/testing.h"

namespace whippet::openai {
namespace {

constexpr int32_t kThink = 258, kThinkEnd = 259, kAction = 260, kPlugin = 261, kActionEnd = 262;
constexpr const char* kCall =
    "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"\\u00e9\"}}\n</tool_call>";

// What a stream says of each choice, put together as clients do.
struct Streamed {
  json message = {
      {"content", ""}, {"reasoning_content", ""}, {"reasoning", ""}, {"tool_calls", json::array()}};
  std::string finish_reason;
};

class Parts : public CodecTest {
 protected:
  Parts() {
    context_ =
        fake_context(nullptr, {"<think>", "</think>", "<|action_start|>", "<|plugin|>", "<|action_end|>"});
    context_.knows_thinking = true;
    context_.tool_call_parser = "hermes";
    context_.max_model_len = 4096;
  }
  static json with_tools(json more = json::object()) {
    more["tools"] = json::parse(R"([{"type": "function", "function": {"name": "f"}},
                                    {"type": "function", "function": {"name": "g"}}])");
    return more;
  }
  static Event thought(const std::string& text, std::vector<int32_t> ids) {
    Event event;
    event.text = text;
    event.token_ids = std::move(ids);
    return event;
  }
  static std::map<int, Streamed> assemble(const std::string& stream) {
    std::map<int, Streamed> choices;
    for (const json& event : events_of(stream)) {
      if (!event.is_object()) continue;
      for (const json& choice : event["choices"]) {
        Streamed& streamed = choices[choice["index"]];
        const json& delta = choice["delta"];
        for (const char* key : {"content", "reasoning_content", "reasoning"})
          streamed.message[key] = streamed.message[key].get<std::string>() + delta.value(key, "");
        for (const json& call : delta.value("tool_calls", json::array()))
          add_call(streamed.message["tool_calls"], call);
        if (choice["finish_reason"].is_string()) streamed.finish_reason = choice["finish_reason"];
      }
    }
    return choices;
  }
  static void add_call(json& calls, const json& piece) {
    const size_t index = piece["index"];
    if (index == calls.size()) {
      EXPECT_EQ(piece["function"]["arguments"], "") << "the name comes before the arguments";
      calls.push_back({{"id", piece["id"]}, {"type", piece["type"]}, {"function", piece["function"]}});
      return;
    }
    ASSERT_LT(index, calls.size());
    EXPECT_FALSE(piece.contains("id"));
    json& arguments = calls[index]["function"]["arguments"];
    arguments = arguments.get<std::string>() + piece["function"]["arguments"].get<std::string>();
  }
  static std::vector<Event> cut(const std::string& text, const Ending& ending, size_t step) {
    std::vector<Event> events;
    for (size_t at = 0; at < text.size(); at += step) events.push_back(piece(text.substr(at, step)));
    events.push_back(finish(ending));
    return events;
  }
};

TEST_F(Parts, ACallIsInTheMessageAndEndsTheAnswer) {
  const json body =
      body_of(*chat(with_tools()), {{piece("I look.\n"), piece(kCall), finish({.completion_tokens = 9})}});
  const json& choice = body["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], "I look.");
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u);
  const json& call = choice["message"]["tool_calls"][0];
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["function"], json::parse(R"({"name": "f", "arguments": "{\"a\":\"é\"}"})"));
  EXPECT_THAT(call["id"].get<std::string>(), testing::MatchesRegex("call_[0-9a-f]{24}"));
  EXPECT_EQ(body_of(*chat(with_tools()), {{finish({}, kCall)}})["choices"][0]["message"]["content"], nullptr);
}

TEST_F(Parts, AStreamPutTogetherIsTheWholeMessageHoweverItIsCut) {
  const std::string text = "<think>\nWhich?\n</think>\n\nBoth.\n" + std::string(kCall) +
                           "\n<tool_call>\n{\"name\": \"g\"}\n</tool_call>\nSo.";
  json whole = body_of(*chat(with_tools()), {{finish({}, text)}})["choices"][0];
  EXPECT_EQ(whole["message"]["reasoning"], "Which?");
  EXPECT_EQ(whole["message"]["content"], "Both.\nSo.");
  EXPECT_EQ(whole["message"]["tool_calls"].size(), 2u);
  const auto without_ids = [](json message) {
    std::set<std::string> ids;
    for (json& call : message["tool_calls"]) {
      ids.insert(call["id"]);
      call.erase("id");
    }
    EXPECT_EQ(ids.size(), message["tool_calls"].size());
    message.erase("role");
    message.erase("refusal");
    return message;
  };
  for (size_t step = 1; step <= text.size() + 1; ++step) {
    const auto exchange = chat(with_tools({{"stream", true}}));
    const Streamed streamed = assemble(stream_of(*exchange, {cut(text, {}, step)})).at(0);
    EXPECT_EQ(without_ids(streamed.message), without_ids(whole["message"])) << step;
    EXPECT_EQ(streamed.finish_reason, "tool_calls");
  }
}

TEST_F(Parts, AHalfWrittenCallIsTextWithLength) {
  const std::string half = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"é";
  for (const bool stream : {false, true}) {
    const auto exchange = chat(with_tools({{"stream", stream}}));
    const std::vector<Event> events = {piece("I look.\n"), piece(half), finish({.reason = "length"})};
    const Streamed got = stream ? assemble(stream_of(*exchange, {events})).at(0) : Streamed();
    const json choice = stream ? json() : body_of(*exchange, {events})["choices"][0];
    EXPECT_EQ(stream ? got.message["content"] : choice["message"]["content"], "I look.\n" + half);
    EXPECT_EQ(stream ? json(got.finish_reason) : choice["finish_reason"], "length");
    EXPECT_TRUE(stream ? got.message["tool_calls"].empty() : !choice["message"].contains("tool_calls"));
  }
  // What was whole before the limit stays a call.
  const json cut_later =
      body_of(*chat(with_tools()), {{piece(kCall), finish({.reason = "length"}, "\n<tool_call>{")}});
  EXPECT_EQ(cut_later["choices"][0]["message"]["tool_calls"].size(), 1u);
  EXPECT_EQ(cut_later["choices"][0]["message"]["content"], "<tool_call>{");
  EXPECT_EQ(cut_later["choices"][0]["finish_reason"], "length");
}

TEST_F(Parts, EveryChoiceHasItsOwnCalls) {
  const auto exchange = chat(with_tools({{"n", 3}, {"stream", true}}));
  Event first = piece(kCall), second = piece("No.", 1), third = piece(std::string(kCall) + kCall, 2);
  auto choices =
      assemble(stream_of(*exchange, {{first, second, third, finish({.last = false}),
                                      finish({.last = false, .index = 1}), finish({.index = 2})}}));
  EXPECT_EQ(choices[0].message["tool_calls"].size(), 1u);
  EXPECT_EQ(choices[1].message["tool_calls"].size(), 0u);
  EXPECT_EQ(choices[1].finish_reason, "stop");
  EXPECT_EQ(choices[2].message["tool_calls"].size(), 2u);
  EXPECT_EQ(choices[2].finish_reason, "tool_calls");
}

TEST_F(Parts, CallsAreLookedForOnlyWhereToolsMayBeCalled) {
  for (const json& more : {json::object(), with_tools({{"tool_choice", "none"}})})
    EXPECT_EQ(body_of(*chat(more), {{finish({}, kCall)}})["choices"][0]["message"]["content"], kCall);
  context_.tool_call_parser = "none";
  EXPECT_EQ(body_of(*chat(with_tools()), {{finish({}, kCall)}})["choices"][0]["message"]["content"], kCall);
}

TEST_F(Parts, ControlTokensOfCallsReachTheParserAndEndTheAnswer) {
  context_.tool_call_parser = "internlm";
  const auto exchange = chat(with_tools());
  const SamplingParams& params = exchange->requests().front().params;
  EXPECT_THAT(params.kept_special_token_ids,
              testing::UnorderedElementsAre(kAction, kPlugin, kActionEnd, kThink, kThinkEnd));
  EXPECT_THAT(params.stop_token_ids, testing::ElementsAre(kActionEnd));
  Event end = finish({.stop_reason = std::to_string(kActionEnd)});
  end.token_ids = {kActionEnd};
  const json body =
      body_of(*exchange, {{piece("<|action_start|><|plugin|>\n{\"name\": \"f\", \"parameters\": {}}"), end}});
  EXPECT_EQ(body["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "f");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_EQ(body["choices"][0]["stop_reason"], nullptr);
  // One that the request itself asked for is told.
  const json asked = body_of(*chat(with_tools({{"stop_token_ids", {kActionEnd}}})), {{end}});
  EXPECT_EQ(asked["choices"][0]["stop_reason"], kActionEnd);
  EXPECT_TRUE(chat({})->requests().front().params.stop_token_ids.empty());
}

TEST_F(Parts, ThinkingHasFieldsOfItsOwnAndIsCounted) {
  const std::vector<Event> events = {thought("<think>", {kThink}),
                                     piece("\nHm."),
                                     piece("\n"),
                                     thought("</think>\n\nY", {kThinkEnd, '\n', '\n', 'Y'}),
                                     piece("es."),
                                     finish({.completion_tokens = 15})};
  const json body = body_of(*chat({}), {events});
  const json& message = body["choices"][0]["message"];
  EXPECT_EQ(message["content"], "Yes.");
  EXPECT_EQ(message["reasoning_content"], "Hm.");
  EXPECT_EQ(message["reasoning"], "Hm.");
  EXPECT_EQ(body["usage"]["completion_tokens_details"]["reasoning_tokens"], 7);
  EXPECT_EQ(body["usage"]["completion_tokens"], 15);
  const auto stream = chat({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  const std::string out = stream_of(*stream, {events});
  EXPECT_EQ(assemble(out).at(0).message["reasoning"], "Hm.");
  EXPECT_EQ(assemble(out).at(0).message["reasoning_content"], "Hm.");
  EXPECT_EQ(assemble(out).at(0).message["content"], "Yes.");
  const auto chunks = events_of(out);
  EXPECT_EQ(chunks[chunks.size() - 2]["usage"]["completion_tokens_details"]["reasoning_tokens"], 7);
}

TEST_F(Parts, ThinkingThatNeverEndsIsNoAnswer) {
  const json body =
      body_of(*chat({}), {{finish({.reason = "length", .completion_tokens = 9}, "<think>\nHm, a")}});
  EXPECT_EQ(body["choices"][0]["message"]["reasoning"], "Hm, a");
  EXPECT_EQ(body["choices"][0]["message"]["content"], "");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
}

TEST_F(Parts, AnAnswerWithoutThinkingSaysSo) {
  const json body = body_of(*chat({}), {{piece("Yes."), finish({})}});
  EXPECT_EQ(body["choices"][0]["message"]["reasoning"], nullptr);
  EXPECT_EQ(body["choices"][0]["message"]["content"], "Yes.");
  EXPECT_EQ(body["usage"]["completion_tokens_details"]["reasoning_tokens"], 0);
  context_.knows_thinking = false;
  EXPECT_FALSE(body_of(*chat({}), {{finish({}, "Yes.")}})["choices"][0]["message"].contains("reasoning"));
}

TEST_F(Parts, ThinkingThatIsNotWantedIsLeftOut) {
  const json body = body_of(*chat({{"include_reasoning", false}}), {{finish({}, "<think>Hm.</think>Yes.")}});
  EXPECT_EQ(body["choices"][0]["message"]["reasoning"], nullptr);
  EXPECT_EQ(body["choices"][0]["message"]["content"], "Yes.");
}

TEST_F(Parts, TheEffortSwitchesThinkingOnAndOff) {
  const auto prompt = [&](const json& more) { return prompt_of(chat(more).get()); };
  context_ = fake_context(
      "{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}{{ reasoning_effort }}.");
  EXPECT_EQ(prompt({}), ".");
  EXPECT_EQ(prompt({{"reasoning_effort", "none"}}), "Falsenone.");
  EXPECT_EQ(prompt({{"reasoning_effort", "low"}}), "Truelow.");
  EXPECT_EQ(prompt({{"reasoning_effort", "high"}, {"chat_template_kwargs", {{"enable_thinking", false}}}}),
            "Falsehigh.");
  context_.chat_template_kwargs_json = R"({"enable_thinking": false})";
  EXPECT_EQ(prompt({}), "False.");
  EXPECT_EQ(prompt({{"reasoning_effort", "high"}}), "Truehigh.");
}

TEST_F(Parts, ThePromptMayHaveOpenedTheThinking) {
  const auto reasoning = [&](const json& more) {
    return body_of(*chat(more), {{finish({}, "Hm.</think>Yes.")}})["choices"][0]["message"]["reasoning"];
  };
  EXPECT_EQ(reasoning({}), nullptr);
  EXPECT_EQ(reasoning({{"chat_template_kwargs", {{"thinking", "\n"}}}, {"add_generation_prompt", false}}),
            "Hm.");
  const json begun = {{{"role", "user"}, {"content", "a"}},
                      {{"role", "assistant"}, {"content", "<think>\nSo"}}};
  EXPECT_EQ(reasoning({{"messages", begun}, {"continue_final_message", true}}), "Hm.");
  context_.reasoning_parser = "deepseek_r1";
  EXPECT_EQ(reasoning({}), "Hm.");
  context_.reasoning_parser = "none";
  EXPECT_EQ(body_of(*chat({}), {{finish({}, "<think>a</think>b")}})["choices"][0]["message"]["content"],
            "<think>a</think>b");
}

TEST_F(Parts, LogprobsAndIdsOfTokensAreAllThere) {
  const auto exchange = chat(with_tools({{"stream", true}, {"logprobs", true}, {"return_token_ids", true}}));
  const std::string text = "Hi " + std::string(kCall);
  std::vector<Event> events;
  for (const char byte : text) events.push_back(with_logprobs(piece(std::string(1, byte))));
  events.push_back(finish({}));
  size_t logprobs = 0, ids = 0;
  for (const json& event : events_of(stream_of(*exchange, {events}))) {
    if (!event.is_object() || event["choices"].empty()) continue;
    const json& choice = event["choices"][0];
    if (choice["logprobs"].is_object()) logprobs += choice["logprobs"]["content"].size();
    if (choice.contains("token_ids")) ids += choice["token_ids"].size();
  }
  EXPECT_EQ(logprobs, text.size());
  EXPECT_EQ(ids, text.size());
}

}  // namespace
}  // namespace whippet::openai
