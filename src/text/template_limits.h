// What a chat template may cost. A template comes with a download and its data from a client, so neither is
// trusted: whatever they do, parsing and rendering end within these bounds, with an error.
#pragma once

#include <cstddef>
#include <cstdint>

namespace whippet {

struct TemplateLimits {
  int64_t max_steps = 10'000'000;  // evaluated nodes, loop iterations, list elements, KiBs of text scanned
  size_t max_output = 16 * 1024 * 1024;  // bytes, of the output and of any string on the way
  size_t max_memory =
      128 * 1024 * 1024;  // bytes of all values of one render; it frees nothing before its end
  int max_depth = 200;    // nesting of expressions, blocks, macro calls and data
};

}  // namespace whippet
