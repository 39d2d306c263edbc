// EngineConfig::quantization: what it asks for, given what the checkpoint holds.
#pragma once

#include <string>

#include "base/error.h"
#include "model/loader.h"

namespace whippet {

// int8 and int4 round what is stored dense. The name of a format ("gptq", "awq", ...) asks for nothing, but
// kInvalidArgument says so where the checkpoint is not stored that way.
Result<OnLoad> read_quantization(const std::string& quantization, const Checkpoint& checkpoint);

}  // namespace whippet
