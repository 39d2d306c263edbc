// Log-probabilities in answers, and that a stream put together says what the whole answer says.
#include "openai/event_testing.h"
#include "openai/testing.h"

namespace whippet::openai {
namespace {

class Logprobs : public CodecTest {
 protected:
  // An answer of "é!" and an end token, with pieces as an engine gives them: half a character has no text.
  static std::vector<Event> accented(int32_t index = 0, bool last = true) {
    Event first = piece("", index), second = piece("é", index), third = piece("!", index);
    first.token_ids = {0xC3};
    second.token_ids = {0xA9};
    Event end = finish({.completion_tokens = 4, .last = last, .index = index});
    end.token_ids = {kFakeEnd};
    const std::vector<std::pair<int32_t, float>> top = {{'x', -0.25f}, {0xC3, -1.f}};
    return {with_logprobs(first, top), with_logprobs(second, top), with_logprobs(third, top),
            with_logprobs(end, top)};
  }

  static void append(json& list, const json& more) {
    for (const json& item : more) list.push_back(item);
  }
  static std::string text_of(const json& chunk) {
    return chunk.contains("delta") ? chunk["delta"].value("content", "") : chunk["text"].get<std::string>();
  }
  // What the chunks of a stream add up to: a whole body's choices.
  static json assembled(const std::vector<json>& events) {
    json choices = json::array();
    for (const json& event : events) {
      if (!event.is_object()) continue;
      for (const json& chunk : event["choices"]) {
        const size_t index = chunk["index"];
        while (choices.size() <= index)
          choices.push_back({{"index", choices.size()}, {"text", ""}, {"logprobs", nullptr}});
        json& choice = choices[index];
        choice["text"] =
            choice["text"].get<std::string>() + (chunk.contains("delta") ? chunk["delta"].value("content", "")
                                                                         : chunk["text"].get<std::string>());
        if (!chunk["logprobs"].is_null()) {
          if (choice["logprobs"].is_null()) choice["logprobs"] = json::object();
          for (const auto& [name, list] : chunk["logprobs"].items())
            if (list.is_array()) append(choice["logprobs"][name], list);
        }
        choice["finish_reason"] = chunk["finish_reason"];
        if (chunk.contains("stop_reason")) choice["stop_reason"] = chunk["stop_reason"];
      }
    }
    return choices;
  }
  static json whole(const json& body) {
    json choices = body["choices"];
    for (json& choice : choices) {
      if (choice.contains("message")) choice["text"] = choice["message"]["content"];
      choice.erase("message");
      if (choice["logprobs"].is_object()) choice["logprobs"].erase("refusal");
    }
    return choices;
  }
};

TEST_F(Logprobs, OfAChat) {
  const json body = body_of(*chat({{"logprobs", true}, {"top_logprobs", 2}}), {accented()});
  const json& content = body["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 4u);
  EXPECT_EQ(content[0],
            json::parse(R"({"token": "bytes:\\xc3", "logprob": -1.0, "bytes": [195], "top_logprobs": [
      {"token": "x", "logprob": -0.25, "bytes": [120]},
      {"token": "bytes:\\xc3", "logprob": -1.0, "bytes": [195]}]})"));
  EXPECT_EQ(content[2]["token"], "!");
  EXPECT_EQ(content[3]["token"], "<|im_end|>");
  EXPECT_EQ(body["choices"][0]["logprobs"]["refusal"], nullptr);
}

TEST_F(Logprobs, OfACompletion) {
  const json body = body_of(*completion({{"logprobs", 2}}), {accented()});
  EXPECT_EQ(body["choices"][0]["logprobs"], json::parse(R"({
      "tokens": ["bytes:\\xc3", "bytes:\\xa9", "!", "<|im_end|>"],
      "token_logprobs": [-1.0, -1.0, -1.0, -1.0],
      "text_offset": [0, 1, 1, 2],
      "top_logprobs": [{"x": -0.25, "bytes:\\xc3": -1.0},
                       {"x": -0.25, "bytes:\\xc3": -1.0, "bytes:\\xa9": -1.0},
                       {"x": -0.25, "bytes:\\xc3": -1.0, "!": -1.0},
                       {"x": -0.25, "bytes:\\xc3": -1.0, "<|im_end|>": -1.0}]})"));
}

TEST_F(Logprobs, OffsetsCountTheTextThatIsThere) {
  const auto offsets = [&](bool skip) {
    Event event = finish({.completion_tokens = 3}, skip ? "ab" : "a<|im_start|>b");
    event.token_ids = {'a', kFakeStart, 'b'};
    const auto exchange = completion({{"logprobs", 0}, {"skip_special_tokens", skip}});
    return body_of(*exchange, {{with_logprobs(event)}})["choices"][0]["logprobs"]["text_offset"];
  };
  EXPECT_EQ(offsets(true), json::parse("[0, 1, 1]"));
  EXPECT_EQ(offsets(false), json::parse("[0, 1, 13]"));
}

TEST_F(Logprobs, TokensAsIdsWhereAskedFor) {
  const json body = body_of(*completion({{"logprobs", 0}, {"return_tokens_as_token_ids", true}}),
                            {{with_logprobs(finish({.completion_tokens = 1}, "A"))}});
  EXPECT_EQ(body["choices"][0]["logprobs"]["tokens"], json::parse(R"(["token_id:65"])"));
  EXPECT_EQ(body["choices"][0]["logprobs"]["top_logprobs"], json::parse(R"([{"token_id:65": -1.0}])"));
}

TEST_F(Logprobs, AnEchoedPromptHasThemToo) {
  std::vector<Event> events = accented();
  events[0].prompt_logprobs = {{.token_id = 'i', .logprob = -3, .rank = 2, .top = {{'o', -0.5f}}}};
  const json body = body_of(*completion({{"logprobs", 1}, {"echo", true}}), {events});
  const json& logprobs = body["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"][0], "H");
  EXPECT_EQ(logprobs["token_logprobs"][0], nullptr);
  EXPECT_EQ(logprobs["top_logprobs"][0], nullptr);
  EXPECT_EQ(logprobs["token_logprobs"][1], -3.0);
  EXPECT_EQ(logprobs["top_logprobs"][1], json::parse(R"({"o": -0.5, "i": -3.0})"));
  EXPECT_EQ(logprobs["text_offset"], json::parse("[0, 1, 2, 3, 3, 4]"));
  EXPECT_EQ(body["choices"][0]["text"], "Hié!");
}

TEST_F(Logprobs, ABosIsNoPartOfTheEchoedText) {
  context_.encode = [](const std::string& text, bool, bool add_special) {
    std::vector<int32_t> ids(text.begin(), text.end());
    if (add_special) ids.insert(ids.begin(), kFakeStart);
    return ids;
  };
  Event event = with_logprobs(finish({.completion_tokens = 1}, "!"));
  event.prompt_logprobs = {{.token_id = 'H', .logprob = -1, .rank = 1, .top = {}},
                           {.token_id = 'i', .logprob = -1, .rank = 1, .top = {}}};
  const json body = body_of(*completion({{"logprobs", 0}, {"echo", true}}), {{event}});
  EXPECT_EQ(body["choices"][0]["text"], "Hi!");
  EXPECT_EQ(body["choices"][0]["logprobs"]["tokens"], json::parse(R"(["<|im_start|>", "H", "i", "!"])"));
  EXPECT_EQ(body["choices"][0]["logprobs"]["text_offset"], json::parse("[0, 0, 1, 2]"));
  EXPECT_EQ(completion({{"add_special_tokens", false}})->requests().front().prompt_token_ids.size(), 2u);
}

TEST_F(Logprobs, OfThePrompt) {
  Event event = finish({.completion_tokens = 1}, "!");
  event.prompt_logprobs = {{.token_id = 'i', .logprob = -3, .rank = 2, .top = {{'o', -0.5f}}}};
  const json expected = json::parse(R"([null, {"105": {"logprob": -3.0, "rank": 2, "decoded_token": "i"},
                                               "111": {"logprob": -0.5, "rank": 1, "decoded_token": "o"}}])");
  EXPECT_EQ(body_of(*completion({{"prompt_logprobs", 1}}), {{event}})["choices"][0]["prompt_logprobs"],
            expected);
  EXPECT_EQ(body_of(*chat({{"prompt_logprobs", 1}}), {{event}})["prompt_logprobs"], expected);
  event.prompt_logprobs[0].top = {{'i', -3.f}};
  EXPECT_EQ(body_of(*chat({{"prompt_logprobs", 1}}), {{event}})["prompt_logprobs"][1].size(), 1u);
}

TEST_F(Logprobs, AStreamPutTogetherIsTheWholeAnswer) {
  const std::vector<std::vector<Event>> one = {accented()};
  std::vector<Event> both = accented(0, false);
  for (Event& event : accented(1)) both.push_back(event);
  both[0].prompt_logprobs = {{.token_id = 'i', .logprob = -3, .rank = 2, .top = {{'o', -0.5f}}}};
  std::swap(both[2], both[4]);  // answers take turns
  for (json more :
       {json{{"n", 2}}, json{{"n", 2}, {"logprobs", 2}, {"echo", true}}, json{{"n", 2}, {"logprobs", 0}}}) {
    const json body = body_of(*completion(more), {both});
    more["stream"] = true;
    EXPECT_EQ(assembled(events_of(stream_of(*completion(more), {both}))), whole(body)) << more;
  }
  for (json more :
       {json::object(), json{{"logprobs", true}}, json{{"logprobs", true}, {"top_logprobs", 2}}}) {
    const json body = body_of(*chat(more), one);
    more["stream"] = true;
    EXPECT_EQ(assembled(events_of(stream_of(*chat(more), one))), whole(body)) << more;
  }
}

}  // namespace
}  // namespace whippet::openai
