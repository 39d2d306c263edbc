// What `whippet inspect` shows: a checkpoint described from its headers, without loading weights.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "api/model_files.h"
#include "hub/hub.h"
#include "model/checkpoint.h"
#include "model/spec.h"

namespace whippet {

// {"model", "revision", "path", "licence", "family", "architecture", "parameters", sizes, "rope", "weights",
// "tokenizer", "chat_template", "sampling", "eos_token_ids", ...}; keys in the order to print.
nlohmann::ordered_json describe_model(const ResolvedModel& source, const Checkpoint& checkpoint,
                                      const ModelSpec& spec, const ModelFiles& files);

// Bytes of all tensors as they are stored.
uint64_t stored_bytes(const Checkpoint& checkpoint);

}  // namespace whippet
