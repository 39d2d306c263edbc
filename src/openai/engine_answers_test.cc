// The codec over a real engine, on a model made on the spot.
#include <condition_variable>
#include <mutex>

#include "api/tiny_model.h"
#include "openai/event_testing.h"
#include "openai/testing.h"
#include "whippet/whippet.h"

namespace whippet::openai {
namespace {

class EngineAnswers : public testing::Test {
 protected:
  EngineAnswers() {
    write_tiny_model(folder_);
    EngineConfig config;
    config.model = folder_.path().string();
    config.threads = 1;
    engine_ = std::make_unique<Engine>(config);
    context_ = make_context(*engine_);
    context_.served_names = {"tiny"};
  }

  // Submits everything and waits for the last event; the stream, or the whole body.
  std::string answer(Outcome<std::unique_ptr<Exchange>> parsed) {
    if (const auto* error = std::get_if<ApiError>(&parsed)) return error->body();
    Exchange& exchange = *std::get<0>(parsed);
    std::mutex mutex;
    std::condition_variable changed;
    std::string out;
    exchange.begin_stream(out);
    std::vector<Request> requests = std::move(exchange.requests());
    for (size_t i = 0; i < requests.size(); ++i)
      engine_->submit(std::move(requests[i]), [&, i](const Event& event) {
        const std::lock_guard lock(mutex);
        exchange.on_event(i, event, out);
        changed.notify_all();
      });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return exchange.done(); });
    if (!exchange.stream()) return exchange.error() ? exchange.error()->body() : exchange.body();
    exchange.end_stream(out);
    return out;
  }

  TestFolder folder_;
  std::unique_ptr<Engine> engine_;
  Context context_;
};

TEST_F(EngineAnswers, TheContextIsTheModels) {
  EXPECT_EQ(context_.max_model_len, 256);
  EXPECT_EQ(context_.vocab_size, 258);
  EXPECT_EQ(context_.token_bytes(195), "\xC3");
  EXPECT_EQ(context_.decode({257}, true), "");
}

TEST_F(EngineAnswers, AStreamSaysWhatTheWholeAnswerSays) {
  json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
               {"temperature", 1.0},
               {"seed", 3},
               {"n", 2},
               {"max_tokens", 20},
               {"logprobs", true},
               {"top_logprobs", 2},
               {"ignore_eos", true}};
  const json whole = json::parse(answer(parse_chat(context_, body.dump(), "id")));
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const auto events = events_of(answer(parse_chat(context_, body.dump(), "id")));
  std::vector<std::string> texts(2);
  std::vector<json> logprobs(2, json::array());
  for (const json& event : events) {
    if (!event.is_object()) continue;
    for (const json& choice : event["choices"]) {
      const size_t index = choice["index"];
      texts[index] += choice["delta"].value("content", "");
      if (choice["logprobs"].is_object())
        for (const json& token : choice["logprobs"]["content"]) logprobs[index].push_back(token);
    }
  }
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(texts[i], whole["choices"][i]["message"]["content"]);
    EXPECT_EQ(logprobs[i], whole["choices"][i]["logprobs"]["content"]);
    EXPECT_EQ(logprobs[i].size(), 20u);
    EXPECT_EQ(whole["choices"][i]["finish_reason"], "length");
  }
  const json& usage = events[events.size() - 2]["usage"];
  EXPECT_EQ(usage["completion_tokens"], 40);
  EXPECT_EQ(usage["prompt_tokens"], whole["usage"]["prompt_tokens"]);
}

TEST_F(EngineAnswers, ScoringAPromptGivesALogprobForEveryTokenButTheFirst) {
  const json body = {{"prompt", {"score me", {72, 105}}}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 1}};
  const json answers = json::parse(answer(parse_completion(context_, body.dump(), "id")));
  EXPECT_EQ(answers["choices"][0]["text"], "score me");
  EXPECT_EQ(answers["choices"][1]["text"], "Hi");
  const json& logprobs = answers["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"].size(), 8u);
  EXPECT_EQ(logprobs["token_logprobs"][0], nullptr);
  for (size_t i = 1; i < 8; ++i) EXPECT_LT(logprobs["token_logprobs"][i].get<double>(), 0);
  EXPECT_EQ(answers["usage"]["completion_tokens"], 0);
}

TEST_F(EngineAnswers, APromptThatWasThereBeforeIsCounted) {
  const json body = {{"prompt", std::string(64, 'x')}, {"max_tokens", 1}};
  answer(parse_completion(context_, body.dump(), "id"));
  const json again = json::parse(answer(parse_completion(context_, body.dump(), "id")));
  EXPECT_GE(again["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>(), 32);
}

TEST_F(EngineAnswers, PromptTemplatesAreTheEngines) {
  const json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"prompt_template", "code"}};
  const json refused = json::parse(answer(parse_chat(context_, body.dump(), "id")));
  EXPECT_EQ(refused["error"]["param"], "prompt_template");
  EXPECT_THAT(refused["error"]["message"].get<std::string>(),
              testing::HasSubstr("there are default, minimal"));
}

}  // namespace
}  // namespace whippet::openai
