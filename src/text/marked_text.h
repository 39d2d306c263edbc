// Text that remembers which parts of it users wrote. Control tokens are recognised outside user spans only.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace whippet {

struct TextSpan {
  size_t begin = 0;  // byte offsets into the text, begin < end
  size_t end = 0;
  bool operator==(const TextSpan&) const = default;
};

struct MarkedText {
  std::string text;
  std::vector<TextSpan> user_spans;  // sorted, disjoint, never adjacent
};

}  // namespace whippet
