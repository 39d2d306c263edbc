#include "engine/engine_core.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/engine_testing.h"

namespace whippet {
namespace {

class EngineCoreTest : public testing::Test {
 protected:
  void start(const CoreLimits& limits) {
    fake_ = std::make_unique<FakeRunner>(limits, kFakeVocab);
    core_ = EngineCore::create(
        fake_->runner(), limits, nullptr,
        {.name = "fake", .fingerprint = "f", .eos_ids = {kFakeEos}, .vocab_used = kFakeVocab});
    core_->start();
    streamer_ = std::thread([this] {
      std::vector<CoreEvent> batch;
      while (core_->events().take(batch)) answers_.take(batch);
    });
  }
  void stop() {
    core_->stop();
    if (streamer_.joinable()) streamer_.join();
  }
  void TearDown() override {
    if (core_) stop();
  }
  // Until an engine without work has told so.
  void wait_until_finished(uint64_t answers) {
    const auto done = [&] {
      uint64_t sum = 0;
      for (const uint64_t count : core_->stats().finished) sum += count;
      return sum >= answers;
    };
    while (!done()) std::this_thread::yield();
  }

  std::unique_ptr<FakeRunner> fake_;
  std::unique_ptr<EngineCore> core_;
  std::thread streamer_;
  Answers answers_;  // the streamer's, until it is joined
};

TEST_F(EngineCoreTest, ManyThreadsSubmitAndEveryAnswerIsItsOwn) {
  CoreLimits limits = small_limits();
  limits.overlap = true;
  start(limits);
  constexpr int32_t kThreads = 4, kEach = 50;
  std::vector<std::pair<uint64_t, CoreRequest>> sent[kThreads];
  std::vector<std::thread> clients;
  for (int32_t t = 0; t < kThreads; ++t) {
    clients.emplace_back([&, t] {
      for (int32_t i = 0; i < kEach; ++i) {
        CoreRequest request = make_request(some_tokens(1 + i % 40, 50 * t + i), 1 + i % 20);
        auto id = core_->submit(request);
        ASSERT_TRUE(id.ok());
        sent[t].emplace_back(*id, std::move(request));
        if (i % 10 == 9) core_->cancel(*id);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  wait_until_finished(kThreads * kEach);
  stop();
  for (const auto& list : sent) {
    for (const auto& [id, request] : list) {
      const Answer& answer = answers_.of(id);
      ASSERT_TRUE(answer.last_of_request);
      if (answer.finish == FinishReason::kAbort) continue;
      ASSERT_EQ(answer.tokens, answer_alone(request, id).tokens);
    }
  }
}

TEST_F(EngineCoreTest, StopEndsWhatRunsAndRefusesWhatComes) {
  CoreLimits limits = small_limits();
  limits.batch_wait_ms = 60000;  // so that it still waits
  limits.batch_wait_size = 100;
  start(limits);
  const auto id = core_->submit(make_request({1, 2}, 3));
  stop();
  EXPECT_EQ(answers_.of(*id).finish, FinishReason::kAbort);
  const auto late = core_->submit(make_request({1}, 1));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Code::kCancelled);
}

TEST_F(EngineCoreTest, StopTellsEveryRequest) {
  start(small_limits());
  std::vector<uint64_t> ids;
  for (uint64_t i = 0; i < 30; ++i) ids.push_back(*core_->submit(make_request(some_tokens(20, i), 40)));
  stop();
  for (const uint64_t id : ids) EXPECT_TRUE(answers_.of(id).last_of_request);
}

TEST_F(EngineCoreTest, RefusalsAreCountedAndWarmUpIsNot) {
  start(small_limits());
  EXPECT_FALSE(core_->submit(make_request({}, 1)).ok());
  core_->count_rejected();
  const EngineStats stats = core_->stats();
  EXPECT_EQ(stats.rejected, 2u);
  EXPECT_EQ(stats.requests, 0u);
  EXPECT_EQ(stats.steps, 0u);
  EXPECT_GT(fake_->num_steps(), 0);
  EXPECT_NE(core_->prometheus().find("model_name=\"fake\""), std::string::npos);
}

}  // namespace
}  // namespace whippet
