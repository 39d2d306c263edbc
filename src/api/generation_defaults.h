// The sampling that a checkpoint asks for in its generation_config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "whippet/sampling_params.h"

namespace whippet {

struct GenerationDefaults {
  SamplingParams params;
  std::optional<int32_t> max_new_tokens;  // bounds answers whose request sets no max_tokens
  std::vector<int32_t> eos_ids;
  std::string source;                 // the file; empty where there is none, or --generation-config none
  std::vector<std::string> named;     // "temperature 0.7": what the file sets
  std::vector<std::string> warnings;  // values that make no sense and are left out
};

// choice: "auto" (the model folder's own), "none", or another folder, which must have one. The EOS ids of the
// model's own file count whatever is chosen.
Result<GenerationDefaults> read_generation_defaults(const std::filesystem::path& folder,
                                                    const std::string& choice);
// A generation_config.json's fields that mean something here. do_sample false is temperature 0.
GenerationDefaults parse_generation_config(const nlohmann::json& config);

}  // namespace whippet
