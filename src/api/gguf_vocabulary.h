// From the tokenizer.ggml.* keys of GGUF metadata to the tokenizer's own terms.
#pragma once

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/vocabulary_reader.h"

namespace whippet {

// kNotFound where the file has no vocabulary; kCorrupt names the key that has the wrong type.
Result<GgufVocabulary> read_gguf_vocabulary(const nlohmann::json& metadata);

}  // namespace whippet
