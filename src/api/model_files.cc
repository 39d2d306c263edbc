#include "api/model_files.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/gguf_vocabulary.h"
#include "api/json_file.h"
#include "api/tool_template.h"
#include "base/log.h"

namespace whippet {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// How templates spell the end of a turn. The second to last is InternLM2's name for its end token before it
// had one.
constexpr std::array kEndTokens = {"<|im_end|>",    "<|eot_id|>",         "<|end|>", "<|endoftext|>",
                                   "<end_of_turn>", "[UNUSED_TOKEN_145]", "</s>"};

struct Sources {
  json config, tokenizer_config, special_tokens, gguf;
  fs::path folder;  // where generation_config.json would be
};

bool has_tokenizer_files(const fs::path& folder) {
  std::error_code failed;
  for (const char* name : {"tokenizer.json", "tokenizer.model", "vocab.json"})
    if (fs::exists(folder / name, failed)) return true;
  return false;
}

bool holds_gguf(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_directory(path, failed)) return true;
  for (const auto& entry : fs::directory_iterator(path, failed))
    if (entry.path().extension() == ".gguf") return true;
  return false;
}

Result<Sources> read_sources(const fs::path& path, const Checkpoint* checkpoint) {
  Sources sources;
  std::error_code failed;
  sources.folder = fs::is_directory(path, failed) ? path : path.parent_path();
  if (checkpoint != nullptr && checkpoint->container == Checkpoint::Container::kGguf)
    sources.gguf = checkpoint->gguf;
  if (checkpoint == nullptr && !has_tokenizer_files(path) && holds_gguf(path)) {
    WH_ASSIGN(Checkpoint opened, open_checkpoint(path));
    sources.gguf = std::move(opened.gguf);
    sources.config = std::move(opened.config);
  }
  if (checkpoint != nullptr) sources.config = checkpoint->config;
  if (!sources.gguf.is_null()) return sources;
  if (checkpoint == nullptr) {
    WH_ASSIGN(sources.config, read_json_file(path / "config.json"));
  }
  WH_ASSIGN(sources.tokenizer_config, read_json_file(path / "tokenizer_config.json"));
  WH_ASSIGN(sources.special_tokens, read_json_file(path / "special_tokens_map.json"));
  return sources;
}

Status read_tokenizer(const fs::path& path, const Sources& sources, ModelFiles& files) {
  Result<Tokenizer> made = [&]() -> Result<Tokenizer> {
    if (sources.gguf.is_null()) return Tokenizer::from_folder(path);
    WH_ASSIGN(GgufVocabulary gguf, read_gguf_vocabulary(sources.gguf));
    WH_ASSIGN(Vocabulary vocabulary, vocabulary_from_gguf(std::move(gguf)));
    return Tokenizer::create(std::move(vocabulary));
  }();
  if (made.ok()) {
    files.tokenizer = std::move(*made);
    return {};
  }
  files.tokenizer_problem = made.error().message;
  if (made.error().code == Code::kNotFound) return {};
  return made.error();
}

void read_spellings(const Sources& sources, ModelFiles& files) {
  const std::optional<Tokenizer>& tokenizer = files.tokenizer;
  files.token_spellings = nlohmann::ordered_json::object();
  const auto set = [&](const char* name, std::optional<int32_t> id) {
    auto spelling = spelling_of(sources.tokenizer_config, name);
    if (!spelling) spelling = spelling_of(sources.special_tokens, name);
    if (!spelling && id) spelling = std::string(tokenizer->token_bytes(*id));
    if (spelling) files.token_spellings[name] = *spelling;
  };
  set("bos_token", tokenizer ? tokenizer->bos_id() : std::nullopt);
  set("eos_token", tokenizer ? tokenizer->eos_id() : std::nullopt);
  set("unk_token", std::nullopt);
  set("pad_token", std::nullopt);
}

// The one token of this spelling, or nothing. A piece that is no token by name may still be one by spelling.
std::vector<int32_t> ids_spelled(const Tokenizer& tokenizer, const char* spelling) {
  if (const auto id = tokenizer.find(spelling)) return {*id};
  const std::vector<int32_t> ids = tokenizer.encode(spelling);
  return ids.size() == 1 ? ids : std::vector<int32_t>{};
}

void read_eos_ids(const Sources& sources, ModelFiles& files) {
  std::vector<int32_t>& ids = files.eos_ids;
  const auto add = [&](const std::vector<int32_t>& more) { ids.insert(ids.end(), more.begin(), more.end()); };
  add(files.generation.eos_ids);
  add(ids_of(sources.config, "eos_token_id"));
  add(ids_of(sources.gguf, "tokenizer.ggml.eos_token_id"));
  add(ids_of(sources.gguf, "tokenizer.ggml.eot_token_id"));
  if (files.tokenizer) {
    if (const auto eos = files.tokenizer->eos_id()) ids.push_back(*eos);
    if (const auto eos = spelling_of(sources.tokenizer_config, "eos_token"))
      if (const auto id = files.tokenizer->find(*eos)) ids.push_back(*id);
    for (const NamedTemplate& chat : files.templates.sources)
      for (const char* end : kEndTokens)
        if (chat.source.find(end) != std::string::npos) add(ids_spelled(*files.tokenizer, end));
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

// "license: apache-2.0" between the lines of dashes that open a model card.
std::string licence_of_card(const fs::path& card) {
  const auto text = read_small_file(card, 1 << 20);
  if (!text.ok() || !text->starts_with("---")) return "";
  const std::string_view head = std::string_view(*text).substr(0, text->find("\n---", 3));
  const std::string_view key = "\nlicense:";
  const size_t at = head.find(key);
  if (at == std::string_view::npos) return "";
  std::string_view value = head.substr(at + key.size());
  value = value.substr(0, value.find('\n'));
  const size_t begin = std::min(value.find_first_not_of(" \t'\""), value.size());
  value.remove_prefix(begin);
  return std::string(value.substr(0, value.find_last_not_of(" \t\r'\"") + 1));
}

std::string read_licence(const Sources& sources) {
  if (const auto licence = spelling_of(sources.gguf, "general.license")) return *licence;
  const std::string card = licence_of_card(sources.folder / "README.md");
  if (!card.empty()) return card;
  std::error_code failed;
  for (const char* name : {"LICENSE", "LICENSE.txt", "LICENSE.md"})
    if (fs::exists(sources.folder / name, failed))
      return fmt::format("see {}", (sources.folder / name).string());
  return "";
}

}  // namespace

Result<ModelFiles> read_model_files(const fs::path& path, const Checkpoint* checkpoint,
                                    const ModelFilesOptions& options) {
  WH_ASSIGN(const Sources sources, read_sources(path, checkpoint));
  ModelFiles files;
  WH_TRY(read_tokenizer(path, sources, files));
  std::vector<NamedTemplate> templates;
  if (!options.chat_template.empty()) {
    WH_ASSIGN(templates, template_from_option(options.chat_template));
  } else if (!sources.gguf.is_null()) {
    templates = gguf_templates(sources.gguf);
  } else {
    WH_ASSIGN(templates, read_template_files(path, sources.tokenizer_config));
  }
  if (files.tokenizer) add_tool_template(*files.tokenizer, templates);
  files.templates = compile_templates(std::move(templates));
  if (!options.prompt_template_dir.empty()) {
    WH_ASSIGN(files.prompts, PromptTemplates::from_folder(options.prompt_template_dir));
  }
  WH_TRY(files.prompts.find(options.prompt_template));
  files.default_prompt = options.prompt_template;
  WH_ASSIGN(files.generation, read_generation_defaults(sources.folder, options.generation_config));
  for (const std::string& warning : files.generation.warnings) log_warning("{}", warning);
  read_spellings(sources, files);
  read_eos_ids(sources, files);
  files.licence = read_licence(sources);
  return files;
}

Result<const Tokenizer*> require_tokenizer(const ModelFiles& files) {
  if (files.tokenizer) return &*files.tokenizer;
  return make_error(Code::kInvalidArgument, "this model has no tokenizer, so it takes token ids only ({})",
                    files.tokenizer_problem);
}

}  // namespace whippet
