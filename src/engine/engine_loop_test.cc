#include "engine/engine_loop.h"

#include <gtest/gtest.h>

#include "engine/engine_testing.h"

namespace whippet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(EngineLoop, AnswersUpToMaxTokens) {
  TestEngine engine(small_limits());
  const uint64_t id = engine.add(make_request(some_tokens(5, 1), 7));
  engine.drain();
  const Answer& answer = engine.answers.of(id);
  EXPECT_EQ(answer.finish, FinishReason::kLength);
  EXPECT_EQ(answer.tokens.size(), 7u);
  EXPECT_EQ(answer.usage.prompt_tokens, 5);
  EXPECT_EQ(answer.usage.completion_tokens, 7);
  EXPECT_TRUE(answer.last_of_request);
  engine.check_empty();
}

TEST(EngineLoop, AnswersAreTheSameTogetherAndAlone) {
  TestEngine engine(small_limits());
  std::vector<CoreRequest> requests;
  for (int32_t i = 0; i < 9; ++i) requests.push_back(make_request(some_tokens(3 + 4 * i, 100 + i), 20));
  for (const CoreRequest& request : requests) engine.add(request);
  engine.drain();
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(engine.answers.of(i + 1).tokens, answer_alone(requests[i], i + 1).tokens) << i;
  }
}

TEST(EngineLoop, UnsetMaxTokensIsTheRestOfTheContext) {
  TestEngine engine(small_limits());
  CoreRequest request = make_request(some_tokens(60, 1), 1);
  request.params.max_tokens.reset();
  const uint64_t id = engine.add(request);
  engine.drain();
  EXPECT_EQ(engine.answers.of(id).tokens.size(), 4u);
  EXPECT_EQ(engine.answers.of(id).finish, FinishReason::kLength);
}

TEST(EngineLoop, FillsTheContextExactly) {
  TestEngine engine(small_limits());
  const uint64_t one = engine.add(make_request(some_tokens(63, 1), 1));
  const uint64_t many = engine.add(make_request(some_tokens(1, 2), 63));
  engine.drain();
  EXPECT_EQ(engine.answers.of(one).tokens.size(), 1u);
  EXPECT_EQ(engine.answers.of(many).tokens.size(), 63u);
  engine.check_empty();
}

TEST(EngineLoop, RefusesWhatDoesNotFitWithItsNumbers) {
  TestEngine engine(small_limits());
  const auto refused = [&](CoreRequest request) { return engine.make(std::move(request)).error().message; };
  EXPECT_NE(refused(make_request({}, 1)).find("prompt is empty"), std::string::npos);
  const std::string full = refused(make_request(some_tokens(64, 1), 1));
  EXPECT_NE(full.find("prompt of 64 tokens"), std::string::npos) << full;
  EXPECT_NE(full.find("limit of 64"), std::string::npos) << full;
  const std::string over = refused(make_request(some_tokens(40, 1), 30));
  EXPECT_NE(over.find("prompt of 40 tokens and max_tokens 30 make 70"), std::string::npos) << over;
  const std::string negative = refused(make_request(some_tokens(40, 1), -3));
  EXPECT_NE(negative.find("max_tokens is -3"), std::string::npos) << negative;
  CoreRequest unset = make_request(some_tokens(64, 1), 1);
  unset.params.max_tokens.reset();
  EXPECT_NE(refused(unset).find("at least 1"), std::string::npos);
  EXPECT_NE(refused(make_request({kFakeVocab}, 1)).find("the id 61"), std::string::npos);
}

TEST(EngineLoop, EosEndsAnAnswerAndIsCounted) {
  TestEngine engine(small_limits());
  int32_t stopped = 0;
  for (int32_t i = 0; i < 40; ++i) {
    CoreRequest request = make_request(some_tokens(4, 500 + i), 50);
    request.params.ignore_eos = false;
    engine.add(request);
  }
  engine.drain();
  for (uint64_t id = 1; id <= 40; ++id) {
    const Answer& answer = engine.answers.of(id);
    if (answer.finish != FinishReason::kStop) continue;
    ++stopped;
    EXPECT_EQ(answer.tokens.back(), kFakeEos);
    EXPECT_EQ(answer.stop_token, -1);
    EXPECT_EQ(answer.usage.completion_tokens, static_cast<int32_t>(answer.tokens.size()));
  }
  EXPECT_GT(stopped, 0);
}

TEST(EngineLoop, StopTokensEndAnAnswerAndAreNamed) {
  CoreRequest request = make_request(some_tokens(4, 9), 30);
  const std::vector<int32_t> free_run = answer_alone(request, 1).tokens;
  request.params.stop_token_ids = {free_run[5], 59};
  TestEngine engine(small_limits());
  const uint64_t id = engine.add(request);
  engine.drain();
  EXPECT_EQ(engine.answers.of(id).finish, FinishReason::kStop);
  EXPECT_EQ(engine.answers.of(id).stop_token, free_run[5]);
  EXPECT_EQ(engine.answers.of(id).tokens.back(), free_run[5]);
  EXPECT_LE(engine.answers.of(id).tokens.size(), 6u);
}

TEST(EngineLoop, MinTokensKeepsEndsAway) {
  CoreRequest request = make_request(some_tokens(4, 9), 30);
  const std::vector<int32_t> free_run = answer_alone(request, 1).tokens;
  request.params.stop_token_ids = {free_run[2]};
  request.params.min_tokens = 10;
  request.params.ignore_eos = false;
  const Answer answer = answer_alone(request, 1);
  EXPECT_GE(answer.tokens.size(), 10u);
  for (size_t i = 0; i < 9; ++i) EXPECT_NE(answer.tokens[i], free_run[2]);
}

TEST(EngineLoop, CancelsInEveryState) {
  for (const bool overlap : {false, true}) {
    CoreLimits limits = small_limits();
    limits.max_num_seqs = 2;
    limits.overlap = overlap;
    TestEngine engine(limits);
    const uint64_t decoding = engine.add(make_request(some_tokens(3, 1), 40));
    engine.step();
    engine.step();
    const uint64_t prefilling = engine.add(make_request(some_tokens(50, 2), 10));
    engine.step();
    const uint64_t waiting = engine.add(make_request(some_tokens(5, 3), 10));
    CoreRequest twins = make_request(some_tokens(5, 4), 10);
    twins.params.n = 3;
    const uint64_t held = engine.add(twins);
    for (const uint64_t id : {decoding, prefilling, waiting, held}) {
      engine.loop.cancel(id);
      engine.answers.take(engine.loop.events());
      EXPECT_EQ(engine.answers.of(id).finish, FinishReason::kAbort);
    }
    EXPECT_FALSE(engine.answers.of(held, 0).last_of_request);
    EXPECT_TRUE(engine.answers.of(held, 2).last_of_request);
    engine.loop.cancel(decoding);  // once more, and something unknown
    engine.loop.cancel(12345);
    engine.drain();
    engine.check_empty();
    EXPECT_EQ(engine.answers.size(), 6u);
    EXPECT_GT(engine.answers.of(decoding).tokens.size(), 0u);
    EXPECT_EQ(engine.answers.of(prefilling).tokens.size(), 0u);
  }
}

TEST(EngineLoop, CancelsAPreemptedSequence) {
  CoreLimits limits = small_limits();
  limits.num_blocks = 16;  // one sequence of max_model_len
  TestEngine engine(limits);
  engine.add(make_request(some_tokens(20, 1), 40));
  const uint64_t newest = engine.add(make_request(some_tokens(20, 2), 40));
  while (engine.loop.scheduler().num_preemptions() == 0) ASSERT_TRUE(engine.step());
  engine.loop.cancel(newest);
  engine.drain();
  EXPECT_EQ(engine.answers.of(newest).finish, FinishReason::kAbort);
  EXPECT_EQ(engine.answers.of(1).finish, FinishReason::kLength);
  engine.check_empty();
}

TEST(EngineLoop, ADeadlineEndsQueuedAndRunningWorkWithTimeout) {
  CoreLimits limits = small_limits();
  limits.max_num_seqs = 1;
  TestEngine engine(limits);
  CoreRequest slow = make_request(some_tokens(3, 1), 40);
  slow.timeout_s = 5;
  CoreRequest behind = make_request(some_tokens(3, 2), 40);
  behind.timeout_s = 2;
  const uint64_t running = engine.add(slow);
  const uint64_t queued = engine.add(behind);
  engine.step();
  engine.now += seconds(3);
  engine.step();
  EXPECT_EQ(engine.answers.of(queued).finish, FinishReason::kTimeout);
  EXPECT_EQ(engine.answers.of(queued).tokens.size(), 0u);
  EXPECT_DOUBLE_EQ(engine.answers.of(queued).timing.queued, 3);
  EXPECT_EQ(engine.answers.of(running).finish, FinishReason::kNone);
  engine.now += seconds(3);
  engine.step();
  EXPECT_EQ(engine.answers.of(running).finish, FinishReason::kTimeout);
  EXPECT_EQ(engine.answers.of(running).tokens.size(), 2u);
  EXPECT_EQ(engine.fake.num_steps(), 2);  // nothing was computed for expired work
  engine.drain();
  engine.check_empty();
}

TEST(EngineLoop, BrokenLogitsEndOneAnswerOnly) {
  TestEngine engine(small_limits());
  engine.fake.poison = 17;
  const uint64_t broken = engine.add(make_request({1, 2, 17, 3}, 8));
  CoreRequest fine = make_request({1, 2, 18, 3}, 8);
  fine.params.banned_token_ids = {17};
  const uint64_t healthy = engine.add(fine);
  engine.drain();
  EXPECT_EQ(engine.answers.of(broken).finish, FinishReason::kError);
  EXPECT_NE(engine.answers.of(broken).error.find("not finite"), std::string::npos);
  EXPECT_EQ(engine.answers.of(healthy).finish, FinishReason::kLength);
  engine.check_empty();
}

TEST(EngineLoop, SeveralAnswersShareTheirPrompt) {
  for (const bool caching : {true, false}) {
    CoreLimits limits = small_limits();
    limits.enable_prefix_caching = caching;
    TestEngine engine(limits);
    CoreRequest request = make_request(some_tokens(33, 5), 6);
    request.params.n = 4;
    request.params.temperature = 1;
    request.params.seed = 3;
    const uint64_t id = engine.add(request);
    engine.step();  // 16 of 33
    engine.step();
    engine.step();  // the first answer draws; its siblings may start
    engine.step();  // each of them computes one token alone
    EXPECT_EQ(engine.loop.scheduler().num_running(), 4);
    EXPECT_EQ(engine.loop.pool().num_free(), limits.num_blocks - 8 - 4);  // 8 full blocks shared, one each
    engine.drain();
    EXPECT_NE(engine.answers.of(id, 0).tokens, engine.answers.of(id, 1).tokens);
    EXPECT_NE(engine.answers.of(id, 1).tokens, engine.answers.of(id, 2).tokens);
    EXPECT_EQ(engine.answers.of(id, 3).tokens.size(), 6u);
    engine.check_empty();
  }
}

TEST(EngineLoop, ChoiceSeedsAreDistinctAndReproducible) {
  CoreRequest request = make_request(some_tokens(9, 5), 12);
  request.params.temperature = 1;
  request.params.seed = 99;
  const Answer alone = answer_alone(request, 4);
  request.params.n = 2;
  TestEngine engine(small_limits());
  const uint64_t id = engine.add(request);
  engine.drain();
  EXPECT_EQ(engine.answers.of(id, 0).tokens, alone.tokens);
  EXPECT_NE(engine.answers.of(id, 1).tokens, alone.tokens);
}

TEST(EngineLoop, PromptLogprobsComeOncePerTokenWhateverTheChunks) {
  CoreRequest request = make_request(some_tokens(40, 8), 3);
  request.params.prompt_logprobs = 0;
  request.params.logprobs = 0;
  const Answer alone = answer_alone(request, 1);
  ASSERT_EQ(alone.prompt_logprobs.size(), 39u);
  ASSERT_EQ(alone.logprobs.size(), 3u);
  for (const int32_t rows : {4, 7, 16, 64}) {
    CoreLimits limits = small_limits();
    limits.max_num_batched_tokens = rows;
    TestEngine engine(limits);
    engine.add(make_request(request.prompt, 9));  // its blocks are no use: every row's logits are wanted
    engine.drain();
    const uint64_t id = engine.add(request);
    for (uint64_t i = 0; i < 3; ++i) engine.add(make_request(some_tokens(20, 40 + i), 20));
    engine.drain();
    EXPECT_EQ(engine.answers.of(id).prompt_logprobs, alone.prompt_logprobs) << rows;
    EXPECT_EQ(engine.answers.of(id).logprobs, alone.logprobs) << rows;
    EXPECT_EQ(engine.answers.of(id).usage.cached_tokens, 0);
    engine.check_empty();
  }
}

TEST(EngineLoop, EveryRoundedShapeHasRunBeforeTheFirstRequest) {
  CoreLimits limits = small_limits();
  limits.round_batches = true;
  limits.overlap = true;
  limits.max_num_seqs = 12;
  limits.max_num_batched_tokens = limits.max_num_logits = 64;
  limits.max_model_len = 1200;  // shapes of 64 blocks, and of all 150
  limits.block_size = 8;
  limits.num_blocks = 600;
  TestEngine engine(limits);
  EXPECT_EQ(engine.loop.run_shapes(), 5 * 2);  // 1, 2, 4, 8 and 12 rows
  const auto known = engine.fake.rounded();
  EXPECT_EQ(known.size(), 10u);
  engine.check_empty();
  for (int32_t i = 0; i < 14; ++i) engine.add(make_request(some_tokens(5 + 60 * i, 3), 30 - 2 * i));
  engine.drain();
  EXPECT_EQ(engine.fake.rounded(), known);
  EXPECT_EQ(engine.answers.of(3).tokens, answer_alone(make_request(some_tokens(125, 3), 26), 3).tokens);
}

TEST(EngineLoop, CountsWhatItDoes) {
  TestEngine engine(small_limits());
  engine.add(make_request(some_tokens(20, 1), 5));
  engine.drain();
  engine.add(make_request(some_tokens(20, 1), 5));
  engine.drain();
  const EngineStats stats = engine.metrics.snapshot(engine.now);
  EXPECT_EQ(stats.requests, 2u);
  EXPECT_EQ(stats.finished[static_cast<size_t>(FinishReason::kLength)], 2u);
  EXPECT_EQ(stats.prompt_tokens, 40u);
  EXPECT_EQ(stats.generation_tokens, 10u);
  EXPECT_EQ(stats.prefix_queries, 40u);
  EXPECT_EQ(stats.prefix_hits, 16u);
  EXPECT_EQ(stats.ttft.count, 2u);
  EXPECT_EQ(stats.inter_token.count, 8u);
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.kv_usage, 0);
}

}  // namespace
}  // namespace whippet
