#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include "engine/engine_testing.h"

namespace whippet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Scheduler, ALongPromptDoesNotStallRunningAnswers) {
  TestEngine engine(small_limits());
  const uint64_t running = engine.add(make_request(some_tokens(2, 1), 40));
  engine.step();
  engine.add(make_request(some_tokens(60, 2), 2));
  for (size_t turn = 0; turn < 4; ++turn) {  // 60 rows at 15 a step
    EXPECT_EQ(engine.answers.of(running).tokens.size(), 1 + turn);
    engine.step();
  }
  EXPECT_EQ(engine.answers.of(2).tokens.size(), 1u);
  EXPECT_EQ(engine.fake.max_rows(), 16);
}

TEST(Scheduler, LowerPriorityRunsFirstAndNobodyStarves) {
  CoreLimits limits = small_limits();
  limits.max_num_seqs = 1;
  TestEngine engine(limits);
  engine.add(make_request(some_tokens(2, 1), 4));
  CoreRequest late = make_request(some_tokens(2, 2), 1);
  late.priority = 2;
  const uint64_t patient = engine.add(late);
  const uint64_t usual = engine.add(make_request(some_tokens(2, 3), 1));
  while (!engine.answers.has(usual)) engine.step();
  EXPECT_FALSE(engine.answers.has(patient));
  // A stream of requests that would always come first, were it not for the time already waited.
  int32_t overtaken = 0;
  while (!engine.answers.has(patient)) {
    engine.add(make_request(some_tokens(2, 4), 1));
    engine.now += seconds(1);
    engine.step();
    ASSERT_LT(++overtaken, 25);
  }
}

TEST(Scheduler, TheHeadOfTheQueueIsNotOvertakenWhenItWaitsForBlocks) {
  CoreLimits limits = small_limits();
  limits.num_blocks = 16;
  TestEngine engine(limits);
  engine.add(make_request(some_tokens(30, 1), 10));
  engine.step();
  const uint64_t large = engine.add(make_request(some_tokens(50, 2), 4));
  const uint64_t small = engine.add(make_request(some_tokens(2, 3), 4));
  while (!engine.answers.has(large)) {
    EXPECT_FALSE(engine.answers.has(small));
    ASSERT_TRUE(engine.step());
  }
  engine.drain();
  EXPECT_EQ(engine.answers.of(small).tokens.size(), 4u);
}

TEST(Scheduler, PreemptsTheNewestAndAnswersAsIfNothingHappened) {
  for (const bool overlap : {false, true}) {
    CoreLimits limits = small_limits();
    limits.num_blocks = 16;
    limits.overlap = overlap;
    TestEngine engine(limits);
    std::vector<CoreRequest> requests;
    for (uint64_t i = 0; i < 4; ++i) requests.push_back(make_request(some_tokens(10, 70 + i), 50));
    for (const CoreRequest& request : requests) engine.add(request);
    std::vector<uint64_t> order;
    while (engine.loop.has_requests()) {
      engine.step();
      engine.check_invariants();
      for (uint64_t id = 1; id <= 4; ++id) {
        const bool done = engine.answers.has(id) && engine.answers.of(id).finish == FinishReason::kLength;
        if (done && std::ranges::find(order, id) == order.end()) order.push_back(id);
      }
    }
    EXPECT_GT(engine.loop.scheduler().num_preemptions(), 3u);
    EXPECT_EQ(order, (std::vector<uint64_t>{1, 2, 3, 4}));  // the oldest is never the victim
    for (uint64_t id = 1; id <= 4; ++id) {
      EXPECT_EQ(engine.answers.of(id).tokens, answer_alone(requests[id - 1], id).tokens) << id;
    }
    engine.step();
    engine.check_empty();
  }
}

TEST(Scheduler, APreemptedSequenceComesBackThroughThePrefixCache) {
  CoreLimits limits = small_limits();
  limits.num_blocks = 16;
  TestEngine engine(limits);
  engine.add(make_request(some_tokens(30, 1), 20));
  engine.add(make_request(some_tokens(24, 2), 20));
  while (engine.loop.scheduler().num_preemptions() == 0) ASSERT_TRUE(engine.step());
  engine.loop.cancel(1);
  engine.step();
  const Sequence& again = *engine.loop.scheduler().running().at(0);
  EXPECT_GE(again.num_published, 5);  // most of its 24 tokens and more were still there
  engine.drain();
  EXPECT_EQ(engine.answers.of(2).usage.cached_tokens, 0);  // of the prompt at first, not of the recomputation
}

TEST(Scheduler, TheBatchingWindowCollectsByTimeOrSize) {
  CoreLimits limits = small_limits();
  limits.batch_wait_ms = 10;
  limits.batch_wait_size = 3;
  TestEngine engine(limits);
  engine.add(make_request(some_tokens(2, 1), 1));
  EXPECT_FALSE(engine.step());
  EXPECT_EQ(engine.loop.wake_time(), engine.now + milliseconds(10));
  engine.now += milliseconds(9);
  engine.add(make_request(some_tokens(2, 2), 1));
  EXPECT_FALSE(engine.step());
  engine.now += milliseconds(1);
  EXPECT_TRUE(engine.step());
  EXPECT_TRUE(engine.answers.has(1) && engine.answers.has(2));

  for (uint64_t i = 0; i < 2; ++i) engine.add(make_request(some_tokens(2, 5 + i), 1));
  EXPECT_FALSE(engine.step());
  engine.add(make_request(some_tokens(2, 8), 1));
  EXPECT_TRUE(engine.step());
  EXPECT_EQ(engine.answers.size(), 5u);
}

TEST(Scheduler, WithoutChunkedPrefillAPromptIsComputedInOneStep) {
  CoreLimits limits = small_limits();
  limits.enable_chunked_prefill = false;
  limits.max_num_batched_tokens = limits.max_model_len + limits.max_num_seqs;
  TestEngine engine(limits);
  engine.add(make_request(some_tokens(50, 1), 3));
  engine.add(make_request(some_tokens(50, 2), 3));
  engine.step();
  EXPECT_EQ(engine.answers.of(1).tokens.size(), 1u);
  EXPECT_FALSE(engine.answers.has(2));  // 18 rows are left, which would only be a part
  engine.step();
  EXPECT_EQ(engine.answers.of(2).tokens.size(), 1u);
  engine.drain();
}

TEST(Scheduler, OverlapGivesTheSameAnswers) {
  std::vector<std::vector<int32_t>> answers[2];
  for (const bool overlap : {false, true}) {
    CoreLimits limits = small_limits();
    limits.overlap = overlap;
    TestEngine engine(limits);
    for (int32_t i = 0; i < 12; ++i) {
      CoreRequest request = make_request(some_tokens(1 + 3 * i, 20 + i), 24);
      request.params.ignore_eos = false;
      request.params.frequency_penalty = i % 2 == 0 ? 0.5f : 0.0f;
      engine.add(request);
    }
    while (engine.loop.has_requests()) {
      engine.step();
      engine.check_invariants();
    }
    engine.step();
    engine.check_empty();
    for (uint64_t id = 1; id <= 12; ++id) answers[overlap].push_back(engine.answers.of(id).tokens);
  }
  EXPECT_EQ(answers[0], answers[1]);
}

TEST(Scheduler, AWindowOverAllLayersFreesWhatNobodyReads) {
  CoreLimits limits = small_limits();
  limits.window = 8;
  limits.max_num_batched_tokens = 4;
  limits.num_blocks = peak_blocks(limits, limits.max_model_len);
  ASSERT_EQ(limits.num_blocks, 5);
  TestEngine engine(limits);
  const CoreRequest request = make_request(some_tokens(40, 1), 24);
  engine.add(request);
  while (engine.loop.has_requests()) {
    engine.step();
    engine.check_invariants();
  }
  EXPECT_EQ(engine.answers.of(1).tokens, answer_alone(request, 1).tokens);
  EXPECT_EQ(engine.loop.scheduler().num_preemptions(), 0u);
  engine.check_empty();
}

}  // namespace
}  // namespace whippet
