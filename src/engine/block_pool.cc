#include "engine/block_pool.h"

#include "base/check.h"

namespace whippet {

BlockPool::BlockPool(int32_t num_blocks)
    : num_blocks_(num_blocks),
      num_free_(0),
      next_(static_cast<size_t>(num_blocks) + 1),
      previous_(static_cast<size_t>(num_blocks) + 1),
      references_(static_cast<size_t>(num_blocks), 0) {
  WH_CHECK(num_blocks > 0, "{}", num_blocks);
  next_[static_cast<size_t>(num_blocks)] = previous_[static_cast<size_t>(num_blocks)] = num_blocks;
  for (int32_t block = 0; block < num_blocks; ++block) link(block, num_blocks);
}

int32_t BlockPool::take() {
  WH_CHECK(num_free_ > 0);
  const int32_t block = next_[static_cast<size_t>(num_blocks_)];
  share(block);
  return block;
}

void BlockPool::share(int32_t block) {
  if (references_[static_cast<size_t>(block)]++ == 0) unlink(block);
}

void BlockPool::release(int32_t block, bool keep) {
  int32_t& references = references_[static_cast<size_t>(block)];
  WH_CHECK(references > 0, "block {} is free already", block);
  if (--references == 0) link(block, keep ? num_blocks_ : next_[static_cast<size_t>(num_blocks_)]);
}

void BlockPool::link(int32_t block, int32_t before) {
  const int32_t after = previous_[static_cast<size_t>(before)];
  next_[static_cast<size_t>(block)] = before;
  previous_[static_cast<size_t>(block)] = after;
  next_[static_cast<size_t>(after)] = block;
  previous_[static_cast<size_t>(before)] = block;
  ++num_free_;
}

void BlockPool::unlink(int32_t block) {
  const int32_t before = next_[static_cast<size_t>(block)];
  const int32_t after = previous_[static_cast<size_t>(block)];
  next_[static_cast<size_t>(after)] = before;
  previous_[static_cast<size_t>(before)] = after;
  --num_free_;
}

}  // namespace whippet
