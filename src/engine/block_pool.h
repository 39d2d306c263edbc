// The blocks of a KV cache as numbers: who holds how many references, and in which order free ones are given
// out. Knows nothing of tokens, so that several owners could share one pool. Nothing allocates after the
// constructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace whippet {

class BlockPool {
 public:
  explicit BlockPool(int32_t num_blocks);

  int32_t num_blocks() const { return num_blocks_; }
  int32_t num_free() const { return num_free_; }
  int32_t references(int32_t block) const { return references_[static_cast<size_t>(block)]; }

  // The free block that was released longest ago, now with one reference. There must be one.
  int32_t take();
  // One more reference; a free block is free no longer.
  void share(int32_t block);
  // One reference less. At none the block is free: given out last if its content is worth keeping, else
  // first.
  void release(int32_t block, bool keep);

 private:
  void link(int32_t block, int32_t before);
  void unlink(int32_t block);

  int32_t num_blocks_;
  int32_t num_free_;
  // A ring of the free blocks in the order in which they are given out; entry num_blocks_ is its head.
  std::vector<int32_t> next_, previous_;
  std::vector<int32_t> references_;
};

}  // namespace whippet
