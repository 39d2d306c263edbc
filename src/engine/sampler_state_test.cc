#include "engine/sampler_state.h"

#include <gtest/gtest.h>

#include <cmath>

namespace whippet {
namespace {

const std::vector<int32_t> kPrompt = {4, 7, 4};

SamplerState make_state(const SamplingParams& params, int32_t choice = 0, bool with_mask = false) {
  const std::vector<int32_t> early = {2, 9};
  return SamplerState(params, 11, choice, kPrompt, early, 10, 100, with_mask);
}

TEST(SamplerState, PlainRowsCarryNoLists) {
  const SampleRow row = make_state({}).row(3, 0);
  EXPECT_EQ(row.num_seen, 0);
  EXPECT_EQ(row.num_bias, 0);
  EXPECT_EQ(row.mask, nullptr);
  EXPECT_EQ(row.num_logprobs, -1);
  EXPECT_EQ(row.seed, 11u);
  EXPECT_EQ(row.position, 3);
}

TEST(SamplerState, CountsThePromptOnceAndTheOutputEachTime) {
  SamplingParams params;
  params.presence_penalty = 1;
  SamplerState state = make_state(params);
  for (const int32_t token : {7, 8, 8}) state.accept(token);
  const SampleRow row = state.row(6, 3);
  ASSERT_EQ(row.num_seen, 3);
  EXPECT_EQ(std::vector(row.seen_ids, row.seen_ids + 3), (std::vector<int32_t>{4, 7, 8}));
  EXPECT_EQ(std::vector(row.output_counts, row.output_counts + 3), (std::vector<int32_t>{0, 1, 2}));
}

TEST(SamplerState, EndsAreBannedUntilMinTokens) {
  SamplingParams params;
  params.min_tokens = 2;
  params.logit_bias = {{5, 1.5f}};
  const SamplerState state = make_state(params);
  const SampleRow early = state.row(4, 1);
  ASSERT_EQ(early.num_bias, 3);
  EXPECT_EQ(std::vector(early.bias_ids, early.bias_ids + 3), (std::vector<int32_t>{5, 2, 9}));
  EXPECT_TRUE(std::isinf(early.bias[1]) && early.bias[1] < 0);
  EXPECT_EQ(state.row(5, 2).num_bias, 1);
}

TEST(SamplerState, AllowedAndBannedIdsBecomeOneMask) {
  SamplingParams params;
  params.allowed_token_ids = {{1, 40, 99}};
  params.banned_token_ids = {40};
  const SamplerState state = make_state(params);
  const uint32_t* mask = state.row(3, 0).mask;
  for (int32_t id = 0; id < 100; ++id) {
    EXPECT_EQ((mask[id / 32] >> (id % 32) & 1) != 0, id == 1 || id == 99) << id;
  }
}

TEST(SamplerState, ATokenMaskIsJoinedWithTheRequestsOwn) {
  SamplingParams params;
  params.banned_token_ids = {0};
  SamplerState state = make_state(params, 0, true);
  const std::span<uint32_t> bits = state.open_mask();
  EXPECT_EQ(bits.size(), 4u);
  bits[0] = 0b111;
  state.close_mask(true);
  EXPECT_EQ(state.row(3, 0).mask[0], 0b110u);
  state.open_mask();
  state.close_mask(false);  // the mask allows everything: what is left is the request's own
  EXPECT_EQ(state.row(3, 0).mask[0], ~1u);
  EXPECT_EQ(state.only_allowed(), -1);
}

TEST(SamplerState, AMaskOfOneTokenIsNoChoice) {
  SamplingParams params;
  params.banned_token_ids = {99};
  SamplerState state = make_state(params, 0, true);
  const auto only = [&state](std::vector<int32_t> ids) {
    const std::span<uint32_t> bits = state.open_mask();
    std::ranges::fill(bits, 0u);
    bits.back() = ~0xfu;  // ids that the vocabulary of 100 does not have
    for (const int32_t id : ids) bits[static_cast<size_t>(id / 32)] |= 1u << (id % 32);
    state.close_mask(true);
    return state.only_allowed();
  };
  EXPECT_EQ(only({}), -1);
  EXPECT_EQ(only({98}), 98);
  EXPECT_EQ(only({0, 99}), 0);  // 99 is banned
  EXPECT_EQ(only({0, 1}), -1);
  EXPECT_EQ(only({31, 32}), -1);
  state.mask_all_but(31);
  EXPECT_EQ(state.only_allowed(), 31);
}

TEST(SamplerState, EveryChoiceHasItsSeed) {
  EXPECT_EQ(make_state({}, 0).row(0, 0).seed, 11u);
  EXPECT_NE(make_state({}, 1).row(0, 0).seed, 11u);
  EXPECT_NE(make_state({}, 1).row(0, 0).seed, make_state({}, 2).row(0, 0).seed);
}

}  // namespace
}  // namespace whippet
