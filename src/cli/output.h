// Standard output: data goes there and nothing else does.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"

namespace whippet {

// Writes and flushes. kCancelled when the reader has gone away, which is no failure to speak of;
// kResourceExhausted says why nothing could be written (disk full, closed).
Status write_output(std::string_view text);
// One line of JSON; bytes that are no UTF-8 are replaced.
Status write_json_line(const nlohmann::ordered_json& value);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace whippet
