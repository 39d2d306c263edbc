#include "engine/block_manager.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/engine_testing.h"

namespace whippet {
namespace {

CoreLimits limits_of(int32_t num_blocks, int32_t window = 0) {
  CoreLimits limits = small_limits();
  limits.num_blocks = num_blocks;
  limits.window = window;
  return limits;
}

class BlockManagerTest : public testing::Test {
 protected:
  void start(int32_t num_blocks, int32_t window = 0) {
    limits_ = limits_of(num_blocks, window);
    pool_.emplace(num_blocks);
    blocks_.emplace(limits_, *pool_, "model");
  }
  Sequence& sequence(std::vector<int32_t> tokens, std::string salt = "") {
    ActiveRequest& request = *requests_.emplace_back(std::make_unique<ActiveRequest>());
    Sequence& made = *request.sequences.emplace_back(std::make_unique<Sequence>());
    made.request = &request;
    made.num_prompt = static_cast<int32_t>(tokens.size());
    made.max_length = 64;
    made.tokens = std::move(tokens);
    blocks_->open(made, salt);
    return made;
  }
  // As if a step had computed all of it.
  void compute(Sequence& s) {
    if (s.num_planned == 0) blocks_->take_cached(s);
    ASSERT_TRUE(blocks_->grow(s, static_cast<int32_t>(s.tokens.size())));
    s.num_planned = s.num_committed = static_cast<int32_t>(s.tokens.size());
    blocks_->commit(s);
  }

  CoreLimits limits_;
  std::optional<BlockPool> pool_;
  std::optional<BlockManager> blocks_;
  std::vector<std::unique_ptr<ActiveRequest>> requests_;
};

TEST_F(BlockManagerTest, AnEqualBeginningIsSharedAndTheLastTokenIsAlwaysComputed) {
  start(16);
  const std::vector<int32_t> prompt = some_tokens(12, 1);
  Sequence& first = sequence(prompt);
  compute(first);
  EXPECT_EQ(pool_->num_free(), 13);
  Sequence& second = sequence(prompt);
  EXPECT_EQ(blocks_->take_cached(second), 8);  // not 12: its last token's logits are wanted
  EXPECT_EQ(second.blocks[0], first.blocks[0]);
  EXPECT_EQ(pool_->references(first.blocks[0]), 2);
  std::vector<int32_t> longer = prompt;
  longer.push_back(3);
  Sequence& third = sequence(longer);
  EXPECT_EQ(blocks_->take_cached(third), 12);
  std::vector<int32_t> other = prompt;
  other[5] += 1;
  Sequence& fourth = sequence(other);
  EXPECT_EQ(blocks_->take_cached(fourth), 4);
}

TEST_F(BlockManagerTest, SaltsAndFingerprintsKeepBlocksApart) {
  start(16);
  compute(sequence(some_tokens(12, 1), "a"));
  EXPECT_EQ(blocks_->take_cached(sequence(some_tokens(12, 1), "b")), 0);
  EXPECT_EQ(blocks_->take_cached(sequence(some_tokens(12, 1), "a")), 8);
}

TEST_F(BlockManagerTest, ReleasedBlocksStayHitsAndTheOldestAreEvictedFirst) {
  start(6);
  Sequence& old = sequence(some_tokens(9, 1));
  compute(old);
  blocks_->close(old);
  Sequence& recent = sequence(some_tokens(9, 2));
  compute(recent);
  blocks_->close(recent);
  EXPECT_EQ(pool_->num_free(), 6);
  EXPECT_EQ(blocks_->num_cached(), 4);
  Sequence& big = sequence(some_tokens(15, 3));
  compute(big);  // takes the two that held half blocks, then the old one's
  EXPECT_EQ(blocks_->take_cached(sequence(some_tokens(9, 1))), 0);
  Sequence& again = sequence(some_tokens(9, 2));
  EXPECT_EQ(blocks_->take_cached(again), 8);
}

TEST_F(BlockManagerTest, AnEndIsEvictedBeforeItsBeginning) {
  start(4);
  Sequence& s = sequence(some_tokens(12, 1));
  compute(s);
  blocks_->close(s);
  compute(sequence(some_tokens(8, 2)));  // one block was never used, one must go
  EXPECT_EQ(blocks_->take_cached(sequence(some_tokens(12, 1))), 8);
}

TEST_F(BlockManagerTest, GrowTakesAllOrNothing) {
  start(3);
  Sequence& s = sequence(some_tokens(16, 1));
  EXPECT_FALSE(blocks_->grow(s, 13));
  EXPECT_EQ(pool_->num_free(), 3);
  EXPECT_TRUE(blocks_->grow(s, 12));
  EXPECT_EQ(pool_->num_free(), 0);
  blocks_->close(s);
  EXPECT_EQ(pool_->num_free(), 3);
}

TEST_F(BlockManagerTest, BehindAWindowBlocksAreFreeButStayHits) {
  start(16, 6);
  const std::vector<int32_t> prompt = some_tokens(29, 1);
  Sequence& s = sequence(prompt);
  compute(s);
  EXPECT_EQ(s.num_behind, 6);  // position 29 sees from 24 on
  EXPECT_EQ(pool_->num_free(), 16 - 2);
  EXPECT_EQ(s.blocks[5], -1);
  // A hit of 28 tokens reads positions from 23 on: two blocks, not seven.
  Sequence& again = sequence(prompt);
  EXPECT_EQ(blocks_->take_cached(again), 28);
  EXPECT_EQ(BlockManager::num_held(again), 2);
  // All but those that the hit needs are evicted; the hit stays.
  blocks_->close(again);
  Sequence& filler = sequence(some_tokens(40, 2));
  ASSERT_TRUE(blocks_->grow(filler, 40));
  EXPECT_EQ(blocks_->take_cached(sequence(prompt)), 28);
}

TEST_F(BlockManagerTest, FullAttentionNeedsTheWholeBeginning) {
  start(8);
  Sequence& s = sequence(some_tokens(17, 1));
  compute(s);
  blocks_->close(s);
  // Evict the beginning only: touch the later blocks by a sequence that shares them all, then squeeze.
  PrefixTree tree(4, 8, "model");
  const int32_t root = tree.hold_root("");
  const std::vector<int32_t> tokens = some_tokens(8, 1);
  const int32_t a = tree.hold_child(root, std::span(tokens).first(4));
  const int32_t b = tree.hold_child(a, std::span(tokens).subspan(4, 4));
  tree.attach(a, 0);
  tree.attach(b, 1);
  tree.detach(0);
  EXPECT_EQ(tree.block_of(a), PrefixTree::kNone);
  EXPECT_EQ(tree.find(a, std::span(tokens).subspan(4, 4)), b);  // the name lives on below its own block
  tree.drop(b);
  tree.drop(a);
  tree.detach(1);
  tree.drop(root);
  EXPECT_EQ(tree.num_nodes(), 0);
}

TEST_F(BlockManagerTest, WithoutRoomForNamesNothingIsCachedAndNothingBreaks) {
  PrefixTree tree(1, 1, "model");
  const int32_t root = tree.hold_root("");
  std::vector<int32_t> held = {root};
  for (int32_t token = 0;; ++token) {
    const int32_t node = tree.hold_child(held.back(), std::span(&token, 1));
    if (node == PrefixTree::kNone) break;
    held.push_back(node);
    ASSERT_LT(held.size(), 100u);
  }
  EXPECT_EQ(tree.hold_root("another"), PrefixTree::kNone);
  while (!held.empty()) {
    tree.drop(held.back());
    held.pop_back();
  }
  EXPECT_EQ(tree.num_nodes(), 0);
}

TEST(BlockPool, GivesOutWhatWasReleasedLongestAgo) {
  BlockPool pool(3);
  for (int32_t i = 0; i < 3; ++i) EXPECT_EQ(pool.take(), i);
  pool.release(1, true);
  pool.release(0, true);
  pool.release(2, false);  // nothing worth keeping: first out
  EXPECT_EQ(pool.take(), 2);
  EXPECT_EQ(pool.take(), 1);
  pool.share(0);
  EXPECT_EQ(pool.num_free(), 0);
}

}  // namespace
}  // namespace whippet
