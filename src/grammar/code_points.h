// Sets of Unicode characters, as the classes of regular expressions mean them. Used by the writers of
// grammars.
#pragma once

#include <cstdint>
#include <vector>

namespace whippet::grammar {

constexpr uint32_t kLastCodePoint = 0x10FFFF;

// [first, last] each; sorted and apart from each other.
class CodePoints {
 public:
  CodePoints() = default;
  CodePoints(std::initializer_list<std::pair<uint32_t, uint32_t>> ranges);

  void add(uint32_t first, uint32_t last);
  void add(const CodePoints& other);
  // Everything else; never NUL or a surrogate, which are no characters of a text.
  CodePoints complement() const;
  CodePoints minus(const CodePoints& other) const;

  bool empty() const { return ranges_.empty(); }
  bool contains(uint32_t point) const;
  // The one character that it has; 0: none or several.
  uint32_t only() const;
  const std::vector<std::pair<uint32_t, uint32_t>>& ranges() const { return ranges_; }

 private:
  void normalize();

  std::vector<std::pair<uint32_t, uint32_t>> ranges_;
};

}  // namespace whippet::grammar
