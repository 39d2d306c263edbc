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

TEST(EngineLoop, AMaskSeesWhatWasDrawnBefore) {
  for (const bool overlap : {false, true}) {
    CoreLimits limits = small_limits();
    limits.overlap = overlap;
    TestEngine engine(limits);
    CoreRequest request = make_request(some_tokens(5, 6), 20);
    request.params.allowed_token_ids = std::vector<int32_t>{1, 2, 3, 4, 5};
    // A toy grammar: never the same token twice in a row, and after a 3 comes a 1.
    request.token_mask = [](int32_t, std::span<const int32_t> output, std::span<uint32_t> mask) {
      if (output.empty()) return false;
      if (output.back() == 3) {
        for (uint32_t& word : mask) word = 0;
        mask[0] = 1u << 1;
      } else {
        mask[0] &= ~(1u << output.back());
      }
      return true;
    };
    const uint64_t id = engine.add(request);
    engine.add(make_request(some_tokens(9, 7), 20));
    engine.drain();
    const std::vector<int32_t>& tokens = engine.answers.of(id).tokens;
    ASSERT_EQ(tokens.size(), 20u);
    for (size_t i = 0; i < tokens.size(); ++i) {
      EXPECT_TRUE(tokens[i] >= 1 && tokens[i] <= 5);
      if (i == 0) continue;
      EXPECT_NE(tokens[i], tokens[i - 1]);
      EXPECT_TRUE(tokens[i - 1] != 3 || tokens[i] == 1);
    }
    EXPECT_EQ(engine.answers.of(2).tokens, answer_alone(make_request(some_tokens(9, 7), 20), 2).tokens);
  }
}

// Free draws, but 12 tokens from the fourth on leave no choice, and the 20th is the end.
CoreRequest with_forced_run() {
  CoreRequest request = make_request(some_tokens(5, 6), 40);
  request.params.temperature = 1;
  request.params.seed = 5;
  request.params.ignore_eos = false;
  request.token_mask = [](int32_t, std::span<const int32_t> output, std::span<uint32_t> mask) {
    const size_t n = output.size();
    if (n < 3 || (n >= 15 && n < 19)) {
      mask[kFakeEos / 32] &= ~(1u << (kFakeEos % 32));
      return true;
    }
    const auto only = n >= 19 ? kFakeEos : static_cast<int32_t>(n);
    std::ranges::fill(mask, 0u);
    mask[static_cast<size_t>(only / 32)] = 1u << (only % 32);
    return true;
  };
  return request;
}

TEST(EngineLoop, TokensWithoutAChoiceTakeNoStepsOfTheirOwn) {
  for (const bool overlap : {false, true}) {
    CoreLimits limits = small_limits();
    limits.overlap = overlap;
    TestEngine engine(limits), drawing(limits);
    const uint64_t id = engine.add(with_forced_run());
    engine.drain();
    CoreRequest drawn = with_forced_run();
    drawn.params.logprobs = 0;  // which only a draw can give
    drawing.add(drawn);
    drawing.drain();
    const Answer& answer = engine.answers.of(id);
    EXPECT_EQ(answer.tokens, drawing.answers.of(id).tokens);
    ASSERT_EQ(answer.tokens.size(), 20u);
    EXPECT_EQ(answer.finish, FinishReason::kStop);
    EXPECT_EQ(answer.usage.completion_tokens, 20);
    EXPECT_EQ(drawing.answers.of(id).logprobs.size(), 20u);
    // Drawn: 20 steps, and with overlap one too many. Jumping: without overlap the 12 and the end take none;
    // with it the first of the 12 is drawn, and so is the end.
    EXPECT_EQ(drawing.fake.num_steps(), overlap ? 21 : 20);
    EXPECT_EQ(engine.fake.num_steps(), overlap ? 9 : 7);
    engine.check_empty();
  }
}

TEST(EngineLoop, ARunWithoutAChoiceEndsAtMaxTokensAndStopTokens) {
  for (const bool overlap : {false, true}) {
    CoreLimits limits = small_limits();
    limits.overlap = overlap;
    for (const int32_t max_tokens : {1, 3, 4, 9}) {
      TestEngine engine(limits);
      CoreRequest request = with_forced_run();
      request.params.max_tokens = max_tokens;
      const uint64_t id = engine.add(request);
      engine.drain();
      EXPECT_EQ(engine.answers.of(id).tokens.size(), static_cast<size_t>(max_tokens));
      EXPECT_EQ(engine.answers.of(id).finish, FinishReason::kLength);
    }
    TestEngine engine(limits);
    CoreRequest request = with_forced_run();
    request.params.stop_token_ids = {7};
    const uint64_t id = engine.add(request);
    engine.drain();
    EXPECT_EQ(engine.answers.of(id).tokens.back(), 7);
    EXPECT_EQ(engine.answers.of(id).tokens.size(), 8u);
    EXPECT_EQ(engine.answers.of(id).stop_token, 7);
    engine.check_empty();
  }
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
