#include "engine/prefix_tree.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace whippet {

PrefixTree::PrefixTree(int32_t block_size, int32_t num_blocks, std::string_view fingerprint)
    : block_size_(block_size), seed_(XXH3_64bits(fingerprint.data(), fingerprint.size())) {
  // Twice the blocks: room for nodes whose own block is gone while that of a descendant is not.
  const size_t num_nodes = 2 * static_cast<size_t>(num_blocks) + 64;
  nodes_.resize(num_nodes);
  tokens_.resize(num_nodes * static_cast<size_t>(block_size));
  buckets_.assign(std::bit_ceil(2 * num_nodes), kNone);
  node_of_block_.assign(static_cast<size_t>(num_blocks), kNone);
  salt_of_root_.assign(num_nodes, nullptr);
  for (size_t i = num_nodes; i-- > 0;) {
    nodes_[i].next = unused_;
    unused_ = static_cast<int32_t>(i);
  }
}

int32_t PrefixTree::hold_root(std::string_view salt) {
  const auto [it, added] = roots_.try_emplace(std::string(salt), kNone);
  if (added) {
    it->second = take_node(XXH3_64bits_withSeed(salt.data(), salt.size(), seed_));
    if (it->second == kNone) {
      roots_.erase(it);
      return kNone;
    }
    salt_of_root_[static_cast<size_t>(it->second)] = &it->first;
  }
  hold(it->second);
  return it->second;
}

uint64_t PrefixTree::name_of(int32_t parent, std::span<const int32_t> tokens) const {
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), nodes_[static_cast<size_t>(parent)].name);
}

int32_t PrefixTree::find(int32_t parent, std::span<const int32_t> tokens) const {
  const uint64_t name = name_of(parent, tokens);
  int32_t node = buckets_[name & (buckets_.size() - 1)];
  for (; node != kNone; node = nodes_[static_cast<size_t>(node)].next) {
    const Node& candidate = nodes_[static_cast<size_t>(node)];
    if (candidate.name != name || candidate.parent != parent) continue;
    const int32_t* own = tokens_.data() + static_cast<size_t>(node) * static_cast<size_t>(block_size_);
    if (std::equal(tokens.begin(), tokens.end(), own)) return node;
  }
  return kNone;
}

int32_t PrefixTree::hold_child(int32_t parent, std::span<const int32_t> tokens) {
  WH_CHECK_EQ(static_cast<int32_t>(tokens.size()), block_size_);
  int32_t node = find(parent, tokens);
  if (node == kNone) {
    node = take_node(name_of(parent, tokens));
    if (node == kNone) return kNone;
    Node& fresh = nodes_[static_cast<size_t>(node)];
    fresh.parent = parent;
    fresh.next = std::exchange(bucket_of(fresh.name), node);
    hold(parent);
    std::ranges::copy(tokens, tokens_.begin() + static_cast<int64_t>(node) * block_size_);
  }
  hold(node);
  return node;
}

void PrefixTree::drop(int32_t node) {
  while (--nodes_[static_cast<size_t>(node)].holders == 0) {
    const int32_t parent = nodes_[static_cast<size_t>(node)].parent;
    if (parent != kNone) {
      unlink(node);
    } else {
      roots_.erase(*std::exchange(salt_of_root_[static_cast<size_t>(node)], nullptr));
    }
    nodes_[static_cast<size_t>(node)].next = std::exchange(unused_, node);
    --num_nodes_;
    if (parent == kNone) return;
    node = parent;
  }
}

void PrefixTree::attach(int32_t node, int32_t block) {
  WH_CHECK(block_of(node) == kNone && !has_node(block), "node {}, block {}", node, block);
  nodes_[static_cast<size_t>(node)].block = block;
  node_of_block_[static_cast<size_t>(block)] = node;
  hold(node);
  ++num_attached_;
}

void PrefixTree::detach(int32_t block) {
  const int32_t node = std::exchange(node_of_block_[static_cast<size_t>(block)], kNone);
  if (node == kNone) return;
  nodes_[static_cast<size_t>(node)].block = kNone;
  --num_attached_;
  drop(node);
}

int32_t PrefixTree::take_node(uint64_t name) {
  if (unused_ == kNone) return kNone;
  const int32_t node = unused_;
  unused_ = nodes_[static_cast<size_t>(node)].next;
  nodes_[static_cast<size_t>(node)] = Node{.name = name};
  ++num_nodes_;
  return node;
}

void PrefixTree::unlink(int32_t node) {
  int32_t* link = &bucket_of(nodes_[static_cast<size_t>(node)].name);
  while (*link != node) link = &nodes_[static_cast<size_t>(*link)].next;
  *link = nodes_[static_cast<size_t>(node)].next;
}

}  // namespace whippet
