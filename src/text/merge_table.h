// Byte pair encoding itself: which neighbours merge, in which order. Shared by byte-level and sentencepiece
// BPE; a symbol is any number that its owner understands, most are token ids.
// Algorithm: Sennrich et al. 2016 (arXiv:1508.07909), lowest rank first, leftmost among equals.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace whippet {

class MergeTable {
 public:
  static constexpr uint32_t kNoRank = UINT32_MAX;
  struct Merge {
    uint32_t rank = kNoRank;
    int32_t result = -1;
  };

  MergeTable() = default;
  explicit MergeTable(size_t num_merges);

  // Of a pair inserted twice the last holds. At most num_merges insertions.
  void insert(int32_t left, int32_t right, Merge merge);

  // rank kNoRank when the pair does not merge.
  Merge find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t slot = slot_of(key);; slot = (slot + 1) & mask_) {
      if (slots_[slot].key == key) return slots_[slot].merge;
      if (slots_[slot].key == kEmpty) return {};
    }
  }

  // Merges the symbols in place until no neighbours merge; returns how many are left.
  // O(n log n) in time, 24 bytes a symbol beside them.
  size_t apply(std::span<int32_t> symbols) const;

 private:
  // A pair of symbols is never (-1, -1), which marks free slots.
  static constexpr uint64_t kEmpty = UINT64_MAX;
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge;
  };

  static uint64_t key_of(int32_t left, int32_t right) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15ULL) >> shift_; }
  size_t apply_to_short(std::span<int32_t> symbols) const;
  size_t apply_to_long(std::span<int32_t> symbols) const;

  std::vector<Slot> slots_ = std::vector<Slot>(2);  // a power of two, at most half full, linear probing
  size_t mask_ = 1;
  int shift_ = 63;
};

}  // namespace whippet
