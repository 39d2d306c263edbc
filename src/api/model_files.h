// Everything that a model's folder or GGUF file says beside its weights: tokenizer, chat templates, default
// sampling, end tokens. Used by the engine, and alone by the commands that need no weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/generation_defaults.h"
#include "api/template_files.h"
#include "base/error.h"
#include "model/checkpoint.h"
#include "text/prompt_template.h"
#include "text/tokenizer.h"

namespace whippet {

struct ModelFiles {
  std::optional<Tokenizer> tokenizer;  // none: token ids go in and out, text does not
  std::string tokenizer_problem;       // why there is none
  ChatTemplates templates;
  PromptTemplates prompts;
  std::string default_prompt;              // of `prompts`, where a chat names none; empty: "default"
  nlohmann::ordered_json token_spellings;  // "bos_token", "eos_token", ... of the template's variables
  GenerationDefaults generation;
  std::vector<int32_t> eos_ids;  // the union of all that the checkpoint names, ascending
  std::string licence;           // as the files say it; may be empty
};

struct ModelFilesOptions {
  std::string generation_config = "auto";  // EngineConfig's
  std::string chat_template = "";          // EngineConfig's, and so are the next
  std::string prompt_template = "";
  std::string prompt_template_dir = "";
};

// `path` is a folder or a .gguf file. `checkpoint` is the opened one where the caller has it; without it a
// GGUF file is opened for its metadata, and a folder needs no weights. A broken file is an error, a missing
// one not.
Result<ModelFiles> read_model_files(const std::filesystem::path& path, const Checkpoint* checkpoint,
                                    const ModelFilesOptions& options);

// The tokenizer, or the reason why text cannot be used with this model.
Result<const Tokenizer*> require_tokenizer(const ModelFiles& files);

}  // namespace whippet
