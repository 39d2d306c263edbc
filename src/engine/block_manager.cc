#include "engine/block_manager.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/math.h"

namespace whippet {

BlockManager::BlockManager(const CoreLimits& limits, BlockPool& pool, std::string_view fingerprint)
    : limits_(limits), pool_(pool), tree_(limits.block_size, pool.num_blocks(), fingerprint) {
  path_.reserve(static_cast<size_t>(limits.max_blocks_per_seq()));
}

void BlockManager::open(Sequence& sequence, std::string_view salt) {
  sequence.root = tree_.hold_root(salt);
  sequence.blocks.reserve(static_cast<size_t>(ceil_div(sequence.max_length, limits_.block_size)));
}

void BlockManager::close(Sequence& sequence) {
  release(sequence);
  if (sequence.root != PrefixTree::kNone) tree_.drop(std::exchange(sequence.root, PrefixTree::kNone));
}

int32_t BlockManager::first_read(int32_t position) const {
  if (limits_.window == 0) return 0;
  return std::max(0, position - limits_.window + 1) / limits_.block_size;
}

std::span<const int32_t> BlockManager::block_tokens(const Sequence& sequence, int32_t block) const {
  return std::span(sequence.tokens)
      .subspan(static_cast<size_t>(block) * static_cast<size_t>(limits_.block_size),
               static_cast<size_t>(limits_.block_size));
}

int32_t BlockManager::take_cached(Sequence& sequence) {
  WH_CHECK(sequence.blocks.empty() && sequence.num_planned == 0);
  if (sequence.root == PrefixTree::kNone) return 0;
  tree_.hold(sequence.root);
  sequence.tip = sequence.root;
  if (sequence.wants_prompt_logprobs()) return 0;

  const int32_t most = (static_cast<int32_t>(sequence.tokens.size()) - 1) / limits_.block_size;
  path_.clear();
  int32_t hit = 0;        // blocks
  int32_t run_begin = 0;  // the blocks [run_begin, b] of the path are all in the pool
  int32_t node = sequence.root;
  for (int32_t b = 0; b < most; ++b) {
    node = tree_.find(node, block_tokens(sequence, b));
    if (node == PrefixTree::kNone) break;
    path_.push_back(node);
    if (tree_.block_of(node) == PrefixTree::kNone) run_begin = b + 1;
    if (run_begin <= first_read((b + 1) * limits_.block_size)) hit = b + 1;
  }
  if (hit == 0) return 0;

  const int32_t first = first_read(hit * limits_.block_size);
  for (int32_t b = 0; b < hit; ++b) {
    const int32_t block = b < first ? -1 : tree_.block_of(path_[static_cast<size_t>(b)]);
    if (block >= 0) pool_.share(block);
    sequence.blocks.push_back(block);
  }
  sequence.tip = path_[static_cast<size_t>(hit) - 1];
  tree_.hold(sequence.tip);
  tree_.drop(sequence.root);
  sequence.num_published = hit;
  sequence.num_behind = first;
  sequence.num_planned = sequence.num_committed = hit * limits_.block_size;
  return sequence.num_planned;
}

int32_t BlockManager::missing(const Sequence& sequence, int32_t length) const {
  return std::max(0, ceil_div(length, limits_.block_size) - static_cast<int32_t>(sequence.blocks.size()));
}

bool BlockManager::grow(Sequence& sequence, int32_t length) {
  const int32_t needed = missing(sequence, length);
  if (needed > pool_.num_free()) return false;
  for (int32_t i = 0; i < needed; ++i) {
    const int32_t block = pool_.take();
    tree_.detach(block);
    sequence.blocks.push_back(block);
  }
  return true;
}

void BlockManager::publish(Sequence& sequence) {
  while (sequence.tip != PrefixTree::kNone &&
         (sequence.num_published + 1) * limits_.block_size <= sequence.num_committed) {
    const int32_t b = sequence.num_published++;
    const int32_t node = tree_.hold_child(sequence.tip, block_tokens(sequence, b));
    tree_.drop(std::exchange(sequence.tip, node));
    if (node == PrefixTree::kNone) return;
    const int32_t block = sequence.blocks[static_cast<size_t>(b)];
    if (block >= 0 && tree_.block_of(node) == PrefixTree::kNone) tree_.attach(node, block);
  }
}

void BlockManager::commit(Sequence& sequence) {
  publish(sequence);
  for (const int32_t first = first_read(sequence.num_committed); sequence.num_behind < first;
       ++sequence.num_behind) {
    const int32_t block = std::exchange(sequence.blocks[static_cast<size_t>(sequence.num_behind)], -1);
    if (block >= 0) release_block(block);
  }
}

void BlockManager::release(Sequence& sequence) {
  // The end first: what many sequences may share is evicted last.
  for (size_t b = sequence.blocks.size(); b-- > 0;) {
    if (sequence.blocks[b] >= 0) release_block(sequence.blocks[b]);
  }
  sequence.blocks.clear();
  if (sequence.tip != PrefixTree::kNone) tree_.drop(std::exchange(sequence.tip, PrefixTree::kNone));
  sequence.num_published = sequence.num_behind = 0;
  sequence.num_planned = sequence.num_committed = 0;
}

}  // namespace whippet
