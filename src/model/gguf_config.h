// GGUF metadata in config.json's spelling, so that a family reads both the same way. Used by the checkpoint.
#pragma once

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/gguf.h"

namespace whippet {

// kUnsupported where the metadata ask for what no family here does; kCorrupt where a key is missing or wrong.
Result<nlohmann::json> gguf_config(const GgufFile& file);

}  // namespace whippet
