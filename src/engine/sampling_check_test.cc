#include "engine/sampling_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace whippet {
namespace {

struct Case {
  const char* field;
  std::function<void(SamplingParams&)> set;
};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<Case> refused_cases() {
  return {
      {"n is 0", [](auto& p) { p.n = 0; }},
      {"n is 129", [](auto& p) { p.n = 129; }},
      {"temperature is -0.1", [](auto& p) { p.temperature = -0.1f; }},
      {"temperature is nan", [](auto& p) { p.temperature = kNan; }},
      {"temperature is inf", [](auto& p) { p.temperature = kInfinity; }},
      {"top_p is 0", [](auto& p) { p.top_p = 0; }},
      {"top_p is 1.1", [](auto& p) { p.top_p = 1.1f; }},
      {"top_p is nan", [](auto& p) { p.top_p = kNan; }},
      {"top_k is -2", [](auto& p) { p.top_k = -2; }},
      {"min_p is -0.1", [](auto& p) { p.min_p = -0.1f; }},
      {"min_p is 1.5", [](auto& p) { p.min_p = 1.5f; }},
      {"repetition_penalty is 0", [](auto& p) { p.repetition_penalty = 0; }},
      {"repetition_penalty is nan", [](auto& p) { p.repetition_penalty = kNan; }},
      {"presence_penalty is 2.5", [](auto& p) { p.presence_penalty = 2.5f; }},
      {"frequency_penalty is -3", [](auto& p) { p.frequency_penalty = -3; }},
      {"max_tokens is 0", [](auto& p) { p.max_tokens = 0; }},
      {"min_tokens is -1", [](auto& p) { p.min_tokens = -1; }},
      {"min_tokens is 5, but max_tokens is 4", [](auto& p) { p.min_tokens = 5, p.max_tokens = 4; }},
      {"logprobs is 21", [](auto& p) { p.logprobs = 21; }},
      {"prompt_logprobs is -1", [](auto& p) { p.prompt_logprobs = -1; }},
      {"stop has an empty string",
       [](auto& p) {
         p.stop = {"a", ""};
       }},
      {"stop has 65 strings", [](auto& p) { p.stop.assign(65, "a"); }},
      {"stop has a string of 1025 bytes", [](auto& p) { p.stop = {std::string(1025, 'a')}; }},
      {"stop has a string that is not UTF-8", [](auto& p) { p.stop = {"\xC3"}; }},
      {"stop_token_ids has the id 100",
       [](auto& p) {
         p.stop_token_ids = {1, 100};
       }},
      {"stop_token_ids has 1025 entries", [](auto& p) { p.stop_token_ids.assign(1025, 1); }},
      {"allowed_token_ids is empty", [](auto& p) { p.allowed_token_ids.emplace(); }},
      {"allowed_token_ids has the id -1", [](auto& p) { p.allowed_token_ids = {{-1}}; }},
      {"banned_token_ids has the id 100", [](auto& p) { p.banned_token_ids = {100}; }},
      {"logit_bias has the id 1000",
       [](auto& p) {
         p.logit_bias = {{1000, 1.0f}};
       }},
      {"logit_bias of token 3 is 101",
       [](auto& p) {
         p.logit_bias = {{3, 101.0f}};
       }},
      {"logit_bias of token 3 is nan",
       [](auto& p) {
         p.logit_bias = {{3, kNan}};
       }},
      {"logit_bias has 1000000 entries",
       [](auto& p) {
         p.logit_bias.assign(1'000'000, {3, 1.0f});
       }},
  };
}

TEST(SamplingCheck, RefusesEveryValueOutOfRangeAndNamesTheField) {
  for (const Case& c : refused_cases()) {
    SamplingParams params;
    c.set(params);
    const Status status = check_sampling(params, 100, true);
    ASSERT_FALSE(status.ok()) << c.field;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_EQ(status.error().message.find(c.field), 0u) << status.error().message;
  }
}

TEST(SamplingCheck, TakesEveryValueAtItsLimit) {
  SamplingParams params;
  EXPECT_TRUE(check_sampling(params, 100, true).ok());
  params.n = 128;
  params.temperature = 0;
  params.top_p = 1e-6f;
  params.top_k = -1;
  params.min_p = 1;
  params.repetition_penalty = 0.01f;
  params.presence_penalty = -2;
  params.frequency_penalty = 2;
  params.max_tokens = params.min_tokens = 1;
  params.logprobs = params.prompt_logprobs = 20;
  params.stop = {"é", "漢", "🙂", std::string(1024, 'x')};
  params.stop_token_ids = {0, 99};
  params.allowed_token_ids = {{0, 99}};
  params.banned_token_ids = {0};
  params.logit_bias = {{0, -100.0f}, {99, 100.0f}};
  EXPECT_TRUE(check_sampling(params, 100, true).ok());
  params.top_k = 1 << 30;
  EXPECT_TRUE(check_sampling(params, 100, true).ok());
}

TEST(SamplingCheck, StopStringsNeedATokenizer) {
  SamplingParams params;
  params.stop = {"x"};
  EXPECT_EQ(check_sampling(params, 100, false).error().code, Code::kUnsupported);
}

TEST(SamplingCheck, LengthsAreCheckedWithoutOverflow) {
  SamplingParams params;
  params.max_tokens = std::numeric_limits<int32_t>::max();
  const std::vector<int32_t> prompt = {1, 2, 3};
  const Status status = check_lengths(prompt, params, 64, 100);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("make 2147483650"), std::string::npos) << status.error().message;
  params.max_tokens.reset();
  params.min_tokens = 62;
  EXPECT_NE(check_lengths(prompt, params, 64, 100).error().message.find("leaves 61"), std::string::npos);
  params.min_tokens = 61;
  EXPECT_TRUE(check_lengths(prompt, params, 64, 100).ok());
}

}  // namespace
}  // namespace whippet
