// What a chat template may cost. A template comes with a download and its data from a client, so neither is
// trusted: whatever they do, parsing and rendering end within these bounds, with an error.
#pragma once

#include <cstddef>
#include <cstdint>

namespace whippet {

struct TemplateLimits {
  // A step is a node evaluated, an iteration, an element of a list, or 256 bytes of text read.
  int64_t max_steps = 10'000'000;
  size_t max_output = 16 * 1024 * 1024;  // bytes, of the output and of any string on the way
  // Bytes of all values of one render, which frees none of them before its end.
  size_t max_memory = 128 * 1024 * 1024;
  int max_depth = 200;  // nesting of expressions, blocks, macro calls and data
};

}  // namespace whippet
