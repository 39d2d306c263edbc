// What the families' configs say the same way, in Hugging Face's old and new spellings. Used by families/.
#pragma once

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/config_reader.h"
#include "model/family.h"
#include "model/spec.h"

namespace whippet {

// Sizes, norms, RoPE, token ids, and the windows of an explicit layer_types list. Problems stay in `config`.
ModelSpec read_common(ConfigReader& config, const char* family);

// Qwen's rule where no layer_types list stands: with use_sliding_window, layers from max_window_layers on
// slide.
void read_qwen_windows(ConfigReader& config, ModelSpec& spec);

// The names that Llama, Qwen2 and Qwen3 share.
TensorNames llama_names();

Family llama_family();
Family qwen2_family();
Family qwen3_family();
Family internlm2_family();

}  // namespace whippet
