// The names of cached blocks. A node is "these block_size tokens after that node": hash(parent's name,
// tokens) finds it, the parent and the tokens themselves confirm it, so no collision can ever serve wrong
// content. A node may have a block attached (its content is in the pool) or not: it then only leads to nodes
// that have. Nodes live while somebody holds them: children, an attached block, a sequence's tip.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace whippet {

class PrefixTree {
 public:
  static constexpr int32_t kNone = -1;

  // `fingerprint` seeds every name: weights, quantization, KV type, rope and window settings.
  PrefixTree(int32_t block_size, int32_t num_blocks, std::string_view fingerprint);

  // The start of all sequences of that salt, held once more; drop() it when done.
  int32_t hold_root(std::string_view salt);
  // kNone when there is no such node.
  int32_t find(int32_t parent, std::span<const int32_t> tokens) const;
  // Held once more. kNone when there is no room for another node: then this content is not cached.
  int32_t hold_child(int32_t parent, std::span<const int32_t> tokens);
  void hold(int32_t node) { ++nodes_[static_cast<size_t>(node)].holders; }
  void drop(int32_t node);

  int32_t block_of(int32_t node) const { return nodes_[static_cast<size_t>(node)].block; }
  // The node must have no block, the block no node.
  void attach(int32_t node, int32_t block);
  // The block's content is about to be overwritten. Does nothing where it has no node.
  void detach(int32_t block);
  bool has_node(int32_t block) const { return node_of_block_[static_cast<size_t>(block)] != kNone; }
  int32_t num_attached() const { return num_attached_; }
  int32_t num_nodes() const { return num_nodes_; }

 private:
  struct Node {
    uint64_t name = 0;
    int32_t parent = kNone;  // kNone: a root
    int32_t block = kNone;
    int32_t holders = 0;
    int32_t next = kNone;  // in its bucket, or in the list of unused nodes
  };
  uint64_t name_of(int32_t parent, std::span<const int32_t> tokens) const;
  int32_t& bucket_of(uint64_t name) { return buckets_[name & (buckets_.size() - 1)]; }
  int32_t take_node(uint64_t name);
  void unlink(int32_t node);

  int32_t block_size_;
  uint64_t seed_;
  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;   // [nodes, block_size]
  std::vector<int32_t> buckets_;  // [a power of two] first node of each
  std::vector<int32_t> node_of_block_;
  std::unordered_map<std::string, int32_t> roots_;
  std::vector<const std::string*> salt_of_root_;  // [nodes] into roots_
  int32_t unused_ = kNone;
  int32_t num_attached_ = 0;
  int32_t num_nodes_ = 0;
};

}  // namespace whippet
