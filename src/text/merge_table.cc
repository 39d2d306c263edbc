#include "text/merge_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

namespace whippet {
namespace {

// Up to this many symbols a scan for the lowest rank beats a heap.
constexpr size_t kShort = 48;

}  // namespace

MergeTable::MergeTable(size_t num_merges) {
  slots_.assign(std::bit_ceil(2 * num_merges + 2), Slot{});
  mask_ = slots_.size() - 1;
  shift_ = 64 - std::countr_zero(slots_.size());
}

void MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = key_of(left, right);
  size_t slot = slot_of(key);
  while (slots_[slot].key != kEmpty && slots_[slot].key != key) slot = (slot + 1) & mask_;
  slots_[slot] = {key, merge};
}

size_t MergeTable::apply(std::span<int32_t> symbols) const {
  if (symbols.size() < 2) return symbols.size();
  return symbols.size() <= kShort ? apply_to_short(symbols) : apply_to_long(symbols);
}

size_t MergeTable::apply_to_short(std::span<int32_t> symbols) const {
  std::array<Merge, kShort> merges;  // merges[i]: of symbols i and i + 1
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == kNoRank) break;
    symbols[best] = merges[best].result;
    std::copy(symbols.begin() + static_cast<ptrdiff_t>(best) + 2,
              symbols.begin() + static_cast<ptrdiff_t>(count),
              symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    std::copy(merges.begin() + best + 1, merges.begin() + count - 1, merges.begin() + best);
    --count;
    if (best > 0) merges[best - 1] = find(symbols[best - 1], symbols[best]);
    if (best + 1 < count) merges[best] = find(symbols[best], symbols[best + 1]);
  }
  return count;
}

// A linked list of symbols and a heap of (rank, position). An entry is stale when the pair at its position
// has another rank by now, or none.
size_t MergeTable::apply_to_long(std::span<int32_t> symbols) const {
  constexpr uint32_t kNone = UINT32_MAX;
  struct Node {
    uint32_t previous, next;
    Merge merge;  // with the next node; rank kNoRank too for a node that was merged away
  };
  const auto count = static_cast<uint32_t>(symbols.size());
  std::vector<Node> nodes(count);
  std::vector<uint64_t> heap;
  const auto pair_up = [&](uint32_t at) {
    Node& node = nodes[at];
    node.merge = node.next == kNone ? Merge{} : find(symbols[at], symbols[node.next]);
    if (node.merge.rank != kNoRank) heap.push_back((static_cast<uint64_t>(node.merge.rank) << 32) | at);
    return node.merge.rank != kNoRank;
  };
  for (uint32_t i = 0; i < count; ++i) {
    nodes[i].previous = i == 0 ? kNone : i - 1;
    nodes[i].next = i + 1 == count ? kNone : i + 1;
    pair_up(i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto rank = static_cast<uint32_t>(heap.back() >> 32);
    const auto at = static_cast<uint32_t>(heap.back());
    heap.pop_back();
    Node& node = nodes[at];
    if (node.merge.rank != rank) continue;
    symbols[at] = node.merge.result;
    Node& gone = nodes[node.next];
    gone.merge = {};
    node.next = gone.next;
    if (node.next != kNone) nodes[node.next].previous = at;
    if (pair_up(at)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
    if (node.previous != kNone && pair_up(node.previous)) {
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  }
  size_t kept = 0;
  for (uint32_t at = 0; at != kNone; at = nodes[at].next) symbols[kept++] = symbols[at];
  return kept;
}

}  // namespace whippet
