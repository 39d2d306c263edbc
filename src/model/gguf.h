// The GGUF container, versions 2 and 3 (ggml-org/ggml, docs/gguf.md): metadata and tensors of one file.
// Trusts nothing that the file says. Used by the checkpoint; gguf_config gives the metadata their meaning.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/checkpoint.h"

namespace whippet {

struct GgufFile {
  uint32_t version = 0;
  nlohmann::json metadata;  // key -> value as the file has it; strings may hold any bytes
  std::vector<TensorView>
      tensors;  // shapes slowest first, the reverse of the file's; data views into the file
};

// kCorrupt names what does not fit; kUnsupported an old version, a big-endian or a split file. `label` names
// the file in messages.
Result<GgufFile> parse_gguf(std::span<const std::byte> file, std::string_view label);

}  // namespace whippet
