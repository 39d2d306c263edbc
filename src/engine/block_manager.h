// Which blocks each sequence holds: growing, sharing equal beginnings through the prefix tree, releasing.
// Host numbers only; what is in a block is the runner's business. Engine thread; nothing allocates in a step.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/block_pool.h"
#include "engine/limits.h"
#include "engine/prefix_tree.h"
#include "engine/sequence.h"

namespace whippet {

class BlockManager {
 public:
  BlockManager(const CoreLimits& limits, BlockPool& pool, std::string_view fingerprint);

  // Once per sequence, before anything else: where the names of its blocks start. Sequences that must share
  // with no other request get a salt of their own.
  void open(Sequence& sequence, std::string_view salt);
  // Releases everything; the sequence is done.
  void close(Sequence& sequence);

  // For a sequence without blocks: takes over the cached blocks of its longest beginning that leaves at least
  // one token to compute, and returns its tokens (num_planned and num_committed are set to them). Blocks
  // behind every layer's window are not needed for a hit.
  int32_t take_cached(Sequence& sequence);
  // Makes room for positions [0, length). False, and nothing changes, when the pool has not enough.
  bool grow(Sequence& sequence, int32_t length);
  // Blocks that grow(length) would take.
  int32_t missing(const Sequence& sequence, int32_t length) const;
  static int32_t num_held(const Sequence& sequence) {
    return static_cast<int32_t>(sequence.blocks.size()) - sequence.num_behind;
  }
  // Offers the full blocks of committed positions to other sequences, and releases those that no later row of
  // this sequence reads.
  void commit(Sequence& sequence);
  // Gives all blocks back (they stay hits until evicted); its root is kept.
  void release(Sequence& sequence);

  int32_t num_free() const { return pool_.num_free(); }
  int32_t num_blocks() const { return pool_.num_blocks(); }
  // Blocks that are hits for a request with the same beginning, held or not.
  int32_t num_cached() const { return tree_.num_attached(); }
  const PrefixTree& tree() const { return tree_; }

 private:
  // First block that a query at `position` reads.
  int32_t first_read(int32_t position) const;
  void publish(Sequence& sequence);
  void release_block(int32_t block) { pool_.release(block, tree_.has_node(block)); }
  std::span<const int32_t> block_tokens(const Sequence& sequence, int32_t block) const;

  CoreLimits limits_;
  BlockPool& pool_;
  PrefixTree tree_;
  std::vector<int32_t> path_;  // nodes of the beginning that is looked up
};

}  // namespace whippet
