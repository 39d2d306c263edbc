#include "text/pattern_matcher.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "text/unicode.h"
#include "text/utf8.h"

namespace whippet {
namespace {

bool has_class(Utf8Character character, uint8_t classes) {
  return (UnicodeTable::get()[character.code] & classes) != 0;
}

// The character that ends at `end`, end > 0.
Utf8Character character_before(std::string_view text, size_t end) {
  const size_t lowest = end < 4 ? 0 : end - 4;
  size_t begin = end - 1;
  while (begin > lowest && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  const Utf8Character character = decode_utf8(text.data() + begin, text.data() + end);
  if (begin + character.size == end) return character;
  return {kInvalidCharacter, 1};
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && has_class(character_before(text, text.size()), kWord);
}

bool begins_with_word(std::string_view text) {
  return !text.empty() && has_class(decode_utf8(text.data(), text.data() + text.size()), kWord);
}

// The begin of the spaces that end at `end`, not before `lowest`.
size_t spaces_begin(std::string_view text, size_t lowest, size_t end) {
  while (end > lowest) {
    const Utf8Character character = character_before(text, end);
    if (!has_class(character, kSpace) || end - lowest < character.size) break;
    end -= character.size;
  }
  return end;
}

size_t spaces_end(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const Utf8Character character = decode_utf8(text.data() + begin, text.data() + text.size());
    if (!has_class(character, kSpace)) break;
    begin += character.size;
  }
  return begin;
}

}  // namespace

bool is_markup(std::string_view spelling) {
  return spelling.size() >= 3 && ((spelling.front() == '<' && spelling.back() == '>') ||
                                  (spelling.front() == '[' && spelling.back() == ']'));
}

PatternMatcher::PatternMatcher(std::vector<Pattern> patterns) {
  std::map<std::string, size_t> by_text;
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (!patterns[i].text.empty()) by_text[patterns[i].text] = i;
  }
  for (const auto& entry : by_text) patterns_.push_back(std::move(patterns[entry.second]));

  for (const Pattern& pattern : patterns_) begins_[static_cast<unsigned char>(pattern.text[0])] = true;
  if (std::count(begins_.begin(), begins_.end(), true) == 1) {
    only_begin_ = static_cast<unsigned char>(patterns_[0].text[0]);
  }
  build_trie();
}

// patterns_ are sorted, so a node owns a range of them. Breadth first: long patterns need no deep recursion.
void PatternMatcher::build_trie() {
  struct Pending {
    uint32_t node;
    size_t begin, end, depth;
  };
  nodes_.emplace_back();
  std::vector<Pending> queue = {{0, 0, patterns_.size(), 0}};
  for (size_t next = 0; next < queue.size(); ++next) {
    const Pending now = queue[next];
    size_t at = now.begin;
    if (at < now.end && patterns_[at].text.size() == now.depth) {
      nodes_[now.node].pattern = static_cast<int32_t>(at++);
    }
    nodes_[now.node].edges_begin = static_cast<uint32_t>(edges_.size());
    while (at < now.end) {
      const char byte = patterns_[at].text[now.depth];
      const size_t begin = at;
      while (at < now.end && patterns_[at].text[now.depth] == byte) ++at;
      const auto child = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
      edges_.push_back({static_cast<unsigned char>(byte), child});
      queue.push_back({child, begin, at, now.depth + 1});
    }
    nodes_[now.node].edges_end = static_cast<uint32_t>(edges_.size());
  }
}

const PatternMatcher::Edge* PatternMatcher::find_edge(const Node& node, unsigned char byte) const {
  const Edge* const end = edges_.data() + node.edges_end;
  const Edge* edge = std::lower_bound(edges_.data() + node.edges_begin, end, byte,
                                      [](const Edge& a, unsigned char b) { return a.byte < b; });
  return edge != end && edge->byte == byte ? edge : nullptr;
}

size_t PatternMatcher::next_candidate(std::string_view text, size_t at) const {
  if (only_begin_ >= 0) {
    const void* found = std::memchr(text.data() + at, only_begin_, text.size() - at);
    return found == nullptr ? text.size()
                            : static_cast<size_t>(static_cast<const char*>(found) - text.data());
  }
  while (at < text.size() && !begins_[static_cast<unsigned char>(text[at])]) ++at;
  return at;
}

int32_t PatternMatcher::longest_at(std::string_view text, size_t at, size_t guard) const {
  int32_t longest = -1;
  const Node* node = nodes_.data();
  for (size_t end = at; end < text.size();) {
    const Edge* edge = find_edge(*node, static_cast<unsigned char>(text[end]));
    if (edge == nullptr) break;
    node = &nodes_[edge->node];
    ++end;
    if (node->pattern >= 0 && (end <= guard || !patterns_[static_cast<size_t>(node->pattern)].guarded)) {
      longest = node->pattern;
    }
  }
  return longest;
}

std::vector<PatternMatcher::Match> PatternMatcher::find_all(std::string_view text,
                                                            std::span<const TextSpan> user_spans) const {
  std::vector<Match> matches;
  if (empty()) return matches;
  size_t span = 0, previous_end = 0;
  for (size_t at = next_candidate(text, 0); at < text.size();) {
    while (span < user_spans.size() && user_spans[span].end <= at) ++span;
    const size_t guard = span == user_spans.size() ? text.size() : std::max(at, user_spans[span].begin);
    const int32_t found = longest_at(text, at, guard);
    if (found < 0) {
      at = next_candidate(text, at + 1);
      continue;
    }
    const Pattern& pattern = patterns_[static_cast<size_t>(found)];
    Match match{at, at + pattern.text.size(), pattern.id};
    const size_t resume = match.end;
    if (!pattern.single_word ||
        (!ends_with_word(text.substr(0, match.begin)) && !begins_with_word(text.substr(match.end)))) {
      if (pattern.lstrip) match.begin = spaces_begin(text, previous_end, match.begin);
      if (pattern.rstrip) match.end = spaces_end(text, match.end);
      matches.push_back(match);
      previous_end = match.end;
    }
    at = next_candidate(text, std::max(resume, previous_end));
  }
  return matches;
}

}  // namespace whippet
