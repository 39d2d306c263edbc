// A quantised checkpoint as a folder that Hugging Face's and vLLM's loaders read too. Used by the quantizer.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/checkpoint.h"

namespace whippet {

// kUnsupported where a tensor has a type that safetensors files of ours cannot hold.
Status check_writable(const Checkpoint& checkpoint);

// Writes config.json and model.safetensors from the checkpoint as it is now, and copies what else lies in its
// folder (tokenizer, templates, code, licence). `folder` is emptied first.
Status write_model_folder(const Checkpoint& checkpoint, const std::filesystem::path& folder);

}  // namespace whippet
