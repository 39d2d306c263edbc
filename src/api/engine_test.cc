// The public API from end to end, on a model made on the spot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/tiny_model.h"
#include "whippet/whippet.h"

namespace whippet {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class PublicApi : public testing::Test {
 protected:
  PublicApi() { write_tiny_model(folder_); }
  EngineConfig config() const {
    EngineConfig config;
    config.model = folder_.path().string();
    config.max_num_seqs = 8;
    config.threads = 1;
    return config;
  }
  static Request greedy(std::string prompt, int32_t max_tokens) {
    Request request;
    request.prompt = std::move(prompt);
    request.params.temperature = 0;
    request.params.ignore_eos = true;
    request.params.max_tokens = max_tokens;
    return request;
  }
  static std::string failure(const std::function<void()>& body, std::string* code = nullptr) {
    try {
      body();
    } catch (const Failure& thrown) {
      if (code != nullptr) *code = thrown.code();
      return thrown.what();
    }
    return "";
  }

  TestFolder folder_;
};

// The events of one request, and waiting for the last.
class Listener {
 public:
  std::function<void(const Event&)> callback() {
    return [this](const Event& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
      changed_.notify_all();
    };
  }
  std::vector<Event> all() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !events_.empty() && events_.back().last; });
    return events_;
  }
  void wait_for_first() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !events_.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> events_;
};

TEST_F(PublicApi, EventsAddUpToTheAnswer) {
  Engine engine(config());
  Listener listener;
  const uint64_t id = engine.submit(greedy("Hello", 40), listener.callback());
  std::string text;
  std::vector<int32_t> ids;
  for (const Event& event : listener.all()) {
    EXPECT_EQ(event.request_id, id);
    text += event.text;
    ids.insert(ids.end(), event.token_ids.begin(), event.token_ids.end());
  }
  const Event last = listener.all().back();
  EXPECT_TRUE(last.finished);
  EXPECT_EQ(last.finish_reason, "length");
  EXPECT_EQ(last.usage.prompt_tokens, 5);
  EXPECT_EQ(last.usage.completion_tokens, 40);
  EXPECT_EQ(ids.size(), 40u);
  EXPECT_EQ(text, engine.decode(ids));
  EXPECT_GE(last.timing.finished, last.timing.first_token);
}

TEST_F(PublicApi, ACancelledRequestEndsWithAbort) {
  Engine engine(config());
  Listener listener;
  const uint64_t id = engine.submit(greedy("Hello", 200), listener.callback());
  engine.cancel(id);
  EXPECT_THAT(listener.all().back().finish_reason, testing::AnyOf("abort", "length"));
  engine.cancel(id);
  engine.cancel(123456);
}

TEST_F(PublicApi, TheDestructorEndsWhatRuns) {
  Listener listener;
  {
    Engine engine(config());
    for (int i = 0; i < 20; ++i) engine.submit(greedy("Hello", 200), listener.callback());
    listener.wait_for_first();
  }
  EXPECT_TRUE(listener.all().back().last);
}

TEST_F(PublicApi, WhatIsWrongIsThrownWithItsCode) {
  Engine engine(config());
  const auto refuse = [&](Request request) {
    std::string code;
    const std::string message =
        failure([&] { engine.submit(std::move(request), [](const Event&) { FAIL(); }); }, &code);
    EXPECT_EQ(code, "invalid_argument") << message;
    return message;
  };
  Request request = greedy("Hello", 5);
  request.params.top_p = 0;
  EXPECT_THAT(refuse(request), HasSubstr("top_p"));
  EXPECT_THAT(refuse(greedy("Hello", 5000)), testing::AllOf(HasSubstr("5000"), HasSubstr("256")));
  EXPECT_THAT(refuse(greedy(std::string(1000, 'a'), 1)), HasSubstr("1000"));
  request = greedy("Hello", 5);
  request.params.n = 2147483647;
  EXPECT_THAT(refuse(request), HasSubstr("2147483647"));
  request = {};
  request.prompt_token_ids = {258};
  EXPECT_THAT(refuse(request), HasSubstr("258"));
  EXPECT_THAT(refuse({}), HasSubstr("needs one of"));
  EXPECT_GE(json::parse(engine.stats_json())["rejected"].get<int>(), 1);
}

TEST_F(PublicApi, AConfigThatIsWrongIsThrown) {
  EngineConfig wrong = config();
  wrong.block_size = 5;
  EXPECT_THAT(failure([&] { Engine engine(wrong); }), HasSubstr("block_size"));
  wrong = config();
  wrong.model = "/nowhere/at/all";
  std::string code;
  EXPECT_THAT(failure([&] { Engine engine(wrong); }, &code), HasSubstr("/nowhere/at/all"));
  EXPECT_EQ(code, "not_found");
  wrong = config();
  wrong.isa = "mmx";
  EXPECT_THAT(failure([&] { Engine engine(wrong); }), HasSubstr("mmx"));
}

TEST_F(PublicApi, AStopTextEndsTheAnswerAndIsNotPartOfIt) {
  LLM llm(config());
  std::vector<Request> requests = {greedy("Hello", 60)};
  const std::string whole = llm.generate(requests, false)[0].outputs[0].text;
  const auto continues = [&](size_t i) { return i < whole.size() && (whole[i] & 0xc0) == 0x80; };
  size_t begin = whole.size() / 2;
  while (continues(begin)) ++begin;
  size_t end = begin + 1;
  while (continues(end)) ++end;
  const std::string stop = whole.substr(begin, end - begin);  // one whole character
  requests[0].params.stop = {stop};
  const Completion answer = llm.generate(requests, false)[0].outputs[0];
  EXPECT_EQ(answer.text, whole.substr(0, whole.find(stop)));
  EXPECT_EQ(answer.finish_reason, "stop");
  EXPECT_EQ(answer.stop_reason, stop);
}

TEST_F(PublicApi, AStopTokenIsAmongTheIdsAndNotInTheText) {
  LLM llm(config());
  std::vector<Request> requests = {greedy("Hello", 20)};
  const Completion whole = llm.generate(requests, false)[0].outputs[0];
  const int32_t stop = whole.token_ids[10];
  const auto first =
      std::find(whole.token_ids.begin(), whole.token_ids.end(), stop) - whole.token_ids.begin();
  requests[0].params.stop_token_ids = {stop};
  const Completion answer = llm.generate(requests, false)[0].outputs[0];
  EXPECT_EQ(static_cast<std::ptrdiff_t>(answer.token_ids.size()), first + 1);
  EXPECT_EQ(answer.text, llm.engine().decode({whole.token_ids.begin(), whole.token_ids.begin() + first}));
  EXPECT_EQ(answer.stop_reason, std::to_string(stop));
}

TEST_F(PublicApi, AnswersComeInTheOrderOfThePromptsAndRefusalsStandAlone) {
  LLM llm(config());
  std::vector<Request> requests;
  for (int i = 0; i < 30; ++i)
    requests.push_back(greedy(std::string(static_cast<size_t>(1 + i), 'a'), 1 + i % 7));
  requests[3].params.temperature = -1;
  const auto outputs = llm.generate(requests, false);
  ASSERT_EQ(outputs.size(), 30u);
  for (int i = 0; i < 30; ++i) {
    const RequestOutput& output = outputs[static_cast<size_t>(i)];
    EXPECT_EQ(output.prompt_token_ids.size(), static_cast<size_t>(1 + i));
    if (i == 3) {
      EXPECT_THAT(output.error, HasSubstr("temperature"));
    } else {
      EXPECT_EQ(output.outputs.at(0).token_ids.size(), static_cast<size_t>(1 + i % 7));
    }
  }
  EXPECT_TRUE(llm.generate(std::vector<Request>{}, false).empty());
}

TEST_F(PublicApi, SeveralAnswersAndLogprobs) {
  LLM llm(config());
  Request request = greedy("Hello", 6);
  request.params.temperature = 1;
  request.params.n = 3;
  request.params.seed = 9;
  request.params.logprobs = 2;
  request.params.prompt_logprobs = 0;
  const RequestOutput output = llm.generate(std::vector<Request>{request}, false)[0];
  ASSERT_EQ(output.outputs.size(), 3u) << output.error;
  EXPECT_NE(output.outputs[0].token_ids, output.outputs[1].token_ids);
  EXPECT_EQ(output.outputs[2].logprobs.size(), 6u);
  EXPECT_EQ(output.outputs[2].logprobs[0].top.size(), 2u);
  EXPECT_EQ(output.prompt_logprobs.size(), 4u);
  EXPECT_EQ(output.usage.completion_tokens, 18);
}

TEST_F(PublicApi, UnsetMaxTokensIs16ForTextAndTheRestForAChat) {
  folder_.write("generation_config.json", R"({"max_new_tokens": 30, "do_sample": false})");
  LLM llm(config());
  SamplingParams params = llm.engine().default_sampling_params();
  EXPECT_EQ(params.temperature, 0);
  params.ignore_eos = true;
  EXPECT_EQ(llm.generate({"Hello"}, params, false)[0].usage.completion_tokens, 16);
  EXPECT_EQ(llm.chat({{"user", "hi"}}, params).usage.completion_tokens, 30)
      << "as generation_config.json says";
  const std::string almost_full(220, 'a');
  const RequestOutput output = llm.chat({{"user", almost_full}}, params);
  EXPECT_EQ(output.usage.prompt_tokens + output.usage.completion_tokens, 256)
      << "the checkpoint's own bound is no reason to refuse a long prompt";
}

TEST_F(PublicApi, ChatRendersTheTemplate) {
  Engine engine(config());
  Request chat;
  chat.messages = {{"user", "<|im_end|>"}};
  const auto [text, ids] = engine.render(chat);
  EXPECT_EQ(text, "<|im_start|>user\n<|im_end|><|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 257), 1) << "the user's spelling is no control token";
  EXPECT_EQ(engine.encode("<|im_end|>"), std::vector<int32_t>{257});
  EXPECT_EQ(engine.encode("<|im_end|>", false).size(), 10u);
}

TEST_F(PublicApi, ReportsDescribeModelAndEngine) {
  Engine engine(config());
  const json info = json::parse(engine.model_info_json());
  EXPECT_EQ(info["family"], "llama");
  EXPECT_GT(info["memory"]["weight_bytes_per_step"].get<int64_t>(), 0);
  EXPECT_EQ(engine.config().max_model_len, 256);
  EXPECT_EQ(engine.max_model_len(), 256);
  EXPECT_EQ(json::parse(engine.stats_json())["running"], 0);
  EXPECT_THAT(engine.metrics(), HasSubstr("vllm:"));
  EXPECT_THAT(version(), testing::StartsWith("0."));
}

TEST_F(PublicApi, ManyThreadsMayUseOneEngine) {
  Engine engine(config());
  std::atomic<int> finished = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        Listener listener;
        const uint64_t id =
            engine.submit(greedy(std::string(static_cast<size_t>(t + i + 1), 'x'), 10), listener.callback());
        if (i % 3 == 0) engine.cancel(id);
        listener.all();
        ++finished;
        engine.stats_json();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(finished, 40);
}

}  // namespace
}  // namespace whippet
