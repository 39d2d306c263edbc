// Finds the spellings of added tokens in text: leftmost, then longest. The part of tokenization that decides
// what users can spell and what they cannot.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/marked_text.h"

namespace whippet {

// True for spellings that can only be markup: <...> and [...]. Ordinary text that a vocabulary happens to
// list (fullwidth letters, runs of spaces) is not.
bool is_markup(std::string_view spelling);

class PatternMatcher {
 public:
  struct Pattern {
    std::string text;  // not empty
    int32_t id = 0;
    bool guarded = false;  // never matches where it would overlap a user span
    bool lstrip = false, rstrip = false, single_word = false;
  };
  // Bytes of text, the whitespace that lstrip and rstrip take included.
  struct Match {
    size_t begin, end;
    int32_t id;
  };

  PatternMatcher() = default;
  // Of two patterns with one text the last holds.
  explicit PatternMatcher(std::vector<Pattern> patterns);

  bool empty() const { return patterns_.empty(); }
  // Sorted, disjoint. Among the patterns that may match at a position the longest does; so what users write
  // behind a token cannot unmake it. user_spans: sorted, disjoint. Time: text times the longest pattern at
  // worst.
  std::vector<Match> find_all(std::string_view text, std::span<const TextSpan> user_spans) const;

 private:
  struct Node {
    uint32_t edges_begin = 0, edges_end = 0;  // into edges_, sorted by byte
    int32_t pattern = -1;
  };
  struct Edge {
    unsigned char byte;
    uint32_t node;
  };

  void build_trie();
  const Edge* find_edge(const Node& node, unsigned char byte) const;
  // The next position at or after `at` where some pattern begins with that byte.
  size_t next_candidate(std::string_view text, size_t at) const;
  // The longest pattern at `at`; guarded ones must end at or before `guard`. -1 when there is none.
  int32_t longest_at(std::string_view text, size_t at, size_t guard) const;

  std::vector<Pattern> patterns_;
  std::vector<Node> nodes_;  // [0] is the root
  std::vector<Edge> edges_;
  std::array<bool, 256> begins_{};
  int only_begin_ = -1;  // the one byte that every pattern begins with, if so
};

}  // namespace whippet
