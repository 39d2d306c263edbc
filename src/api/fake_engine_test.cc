#include "api/fake_engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "api/tiny_model.h"

namespace whippet {
namespace {

Request ask(int32_t max_tokens) {
  Request request;
  request.prompt = "Hello";
  request.params.max_tokens = max_tokens;
  return request;
}

class FakeEngineTest : public testing::Test {
 protected:
  FakeEngineTest() { write_tiny_model(folder_); }
  FakeEngineOptions options() const {
    return {.model = folder_.path(), .on_step = [](int64_t) { return 'a'; }};
  }
  TestFolder folder_;
};

TEST_F(FakeEngineTest, EveryRowDrawsTheTokenOfItsStep) {
  std::atomic<int32_t> next = 'a';
  FakeEngineOptions counting = options();
  counting.on_step = [&next](int64_t) { return next.fetch_add(1); };
  Engine engine = FakeEngine::make(counting);
  next = 'a';  // the warm-up is over
  std::string text;
  std::promise<Event> last;
  engine.submit(ask(5), [&](const Event& event) {
    text += event.text;
    if (event.last) last.set_value(event);
  });
  const Event end = last.get_future().get();
  EXPECT_EQ(text, "abcde");
  EXPECT_EQ(end.finish_reason, "length");
  EXPECT_EQ(end.usage.completion_tokens, 5);
  EXPECT_EQ(engine.counts().running, 0);
  EXPECT_EQ(engine.counts().generation_tokens, 5u);
}

TEST_F(FakeEngineTest, WhatFollowsEventsRunsOnTheirThreadAndAfterThem) {
  Engine engine = FakeEngine::make(options());
  std::thread::id thread_of_events, thread_after;
  int events = 0, seen_after = 0;
  std::promise<void> done;
  engine.set_after_events([&] {
    thread_after = std::this_thread::get_id();
    seen_after = events;
    if (events == 8) done.set_value();
  });
  engine.submit(ask(8), [&](const Event&) {
    thread_of_events = std::this_thread::get_id();
    ++events;
  });
  done.get_future().wait();
  EXPECT_EQ(thread_after, thread_of_events);
  EXPECT_EQ(seen_after, 8);
}

TEST_F(FakeEngineTest, AFolderWithoutATokenizerIsAFailure) {
  FakeEngineOptions bare = options();
  TestFolder empty;
  bare.model = empty.path();
  EXPECT_THROW(FakeEngine::make(bare), Failure);
}

}  // namespace
}  // namespace whippet
