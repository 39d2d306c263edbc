// Many prompts: one a line, all run together, answers as JSON lines in the order of the input.
#pragma once

#include "base/error.h"
#include "cli/lines.h"
#include "whippet/whippet.h"

namespace whippet {

// json: lines are objects, else prompts as they stand. `base` holds what a line does not say. The exit code
// is 1 where a line failed.
Result<int> generate_lines(Engine& engine, LineReader& reader, const Request& base, bool json);

}  // namespace whippet
