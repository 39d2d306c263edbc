// What a token mask (a grammar) makes of an answer, and how many steps it takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/engine_testing.h"

namespace whippet {
namespace {

TEST(EngineTokenMask, AMaskSeesWhatWasDrawnBefore) {
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

TEST(EngineTokenMask, TokensWithoutAChoiceTakeNoStepsOfTheirOwn) {
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

TEST(EngineTokenMask, ARunWithoutAChoiceEndsAtMaxTokensAndStopTokens) {
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

}  // namespace
}  // namespace whippet
