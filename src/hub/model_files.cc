#include "hub/model_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/ascii.h"
#include "base/progress.h"
#include "hub/model_name.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 3;
constexpr size_t kMaxListed = 40;
constexpr uintmax_t kMaxIndex = 64u << 20;
constexpr std::array kSmallFiles = {
    "config.json",          "generation_config.json",  "tokenizer.model",     "vocab.json",
    "merges.txt",           "added_tokens.json",       "chat_template.jinja", "chat_template.json",
    "quantize_config.json", "special_tokens_map.json", "quant_config.json"};
constexpr std::array kPickled = {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack", ".onnx"};

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_top_level(const RepoFile& file) { return file.path.find('/') == std::string::npos; }

bool is_small_file(const RepoFile& file) {
  if (!is_top_level(file)) return false;
  const bool tokenizer = file.path.starts_with("tokenizer") && file.path.ends_with(".json");
  return tokenizer || std::find(kSmallFiles.begin(), kSmallFiles.end(), file.path) != kSmallFiles.end();
}

// "-00001-of-00003" before the ending.
bool is_shard(std::string_view path, std::string_view ending) {
  constexpr std::string_view kShape = "-00000-of-00000";
  if (path.size() < kShape.size() + ending.size()) return false;
  const std::string_view part = path.substr(path.size() - ending.size() - kShape.size(), kShape.size());
  return std::equal(part.begin(), part.end(), kShape.begin(), [](char c, char shape) {
    return shape == '0' ? std::isdigit(static_cast<unsigned char>(c)) != 0 : c == shape;
  });
}

// A vision projector or an importance matrix is no language model.
bool is_gguf_model(const RepoFile& file) {
  const std::string name = lower_ascii(file.path);
  return name.ends_with(".gguf") && name.find("mmproj") == name.npos && name.find("imatrix") == name.npos;
}

// Whether `tag` stands in the path as a whole word: Q4_K is not found in Q4_K_M, nor F16 in BF16.
bool has_tag(std::string_view path, std::string_view tag) {
  const auto alnum = [&](size_t i) { return std::isalnum(static_cast<unsigned char>(path[i])) != 0; };
  for (size_t at = path.find(tag); at != path.npos; at = path.find(tag, at + 1)) {
    const size_t end = at + tag.size();
    if ((at == 0 || !alnum(at - 1)) && (end == path.size() || (!alnum(end) && path[end] != '_'))) return true;
  }
  return false;
}

std::vector<RepoFile> matching(const std::vector<RepoFile>& ggufs, const std::string& tag) {
  std::vector<RepoFile> found;
  const std::string wanted = lower_ascii(tag);
  const auto take_if = [&](const auto& condition) {
    if (!found.empty()) return;
    std::copy_if(ggufs.begin(), ggufs.end(), std::back_inserter(found),
                 [&](const RepoFile& file) { return condition(lower_ascii(file.path)); });
  };
  take_if([&](const std::string& path) { return base_name(path) == wanted; });
  take_if([&](const std::string& path) { return has_tag(base_name(path), wanted); });
  take_if([&](const std::string& path) { return has_tag(path, wanted); });
  return found;
}

std::string listed(const std::vector<RepoFile>& files) {
  std::string out;
  for (size_t i = 0; i < files.size() && i < kMaxListed; ++i) {
    out += "\n  " + files[i].path;
    if (files[i].size) out += " (" + format_bytes(*files[i].size) + ")";
  }
  if (files.size() > kMaxListed) out += fmt::format("\n  and {} more", files.size() - kMaxListed);
  return out;
}

Result<ModelFileSet> choose_gguf(const std::vector<RepoFile>& all, const std::string& tag,
                                 const std::string& who) {
  std::vector<RepoFile> ggufs;
  std::copy_if(all.begin(), all.end(), std::back_inserter(ggufs), is_gguf_model);
  if (ggufs.empty()) {
    return make_error(Code::kNotFound, "{} has no GGUF file, so the tag '{}' selects nothing", who, tag);
  }
  const std::vector<RepoFile> found = tag.empty() ? ggufs : matching(ggufs, tag);
  if (found.empty()) {
    return make_error(Code::kNotFound, "no GGUF file of {} matches '{}'; it has:{}", who, tag, listed(ggufs));
  }
  const auto split = [](const RepoFile& file) { return is_shard(file.path, ".gguf"); };
  if (std::all_of(found.begin(), found.end(), split)) {
    return make_error(
        Code::kUnsupported,
        "{} of {} is one part of a split GGUF, which is not read: take another file, or merge the "
        "parts into one with llama-gguf-split --merge",
        found.front().path, who);
  }
  if (found.size() > 1) {
    return make_error(Code::kInvalidArgument, "{} has {} GGUF files{}; choose one, as in {}:{}:{}", who,
                      found.size(), tag.empty() ? "" : " that match '" + tag + "'", who, "Q4_K_M",
                      listed(found));
  }
  return ModelFileSet{{found.front()}, found.front().path};
}

// The safetensors files that transformers would load: one file, or the shards of an index.
std::vector<RepoFile> choose_safetensors(const std::vector<RepoFile>& all) {
  std::vector<RepoFile> candidates, indices;
  for (const RepoFile& file : all) {
    if (!is_top_level(file)) continue;  // "original/", "onnx/": other spellings of the same weights
    if (file.path.ends_with(".safetensors.index.json")) indices.push_back(file);
    const bool other = file.path.starts_with("consolidated") || file.path.starts_with("adapter_");
    if (file.path.ends_with(".safetensors") && !other) candidates.push_back(file);
  }
  const auto keep = [&](const auto& condition) {
    std::vector<RepoFile> kept;
    std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(kept), condition);
    if (!kept.empty()) candidates = kept;
    return !kept.empty();
  };
  if (keep([](const RepoFile& file) { return file.path == "model.safetensors"; })) return candidates;
  const auto by_name = [](const RepoFile& file) { return file.path == "model.safetensors.index.json"; };
  auto index = std::find_if(indices.begin(), indices.end(), by_name);
  if (index == indices.end()) index = indices.begin();
  if (index == indices.end()) return candidates;
  const std::string stem = index->path.substr(0, index->path.find(".safetensors")) + "-";
  keep([&](const RepoFile& file) {
    return file.path.starts_with(stem) && is_shard(file.path, ".safetensors");
  });
  candidates.insert(candidates.begin(), *index);
  return candidates;
}

Error no_weights(const std::vector<RepoFile>& all, const std::string& who) {
  for (const RepoFile& file : all) {
    for (const char* ending : kPickled) {
      if (!file.path.ends_with(ending)) continue;
      return make_error(
          Code::kUnsupported,
          "{} has its weights only as {}, a format that can run code when it is loaded (or is no "
          "checkpoint): not read. Look for a safetensors or GGUF upload of the model, or convert it: "
          "transformers' save_pretrained(folder, safe_serialization=True)",
          who, file.path);
    }
  }
  return make_error(Code::kNotFound, "{} has no weights: neither *.safetensors nor *.gguf", who);
}

// The shards an index names, or nothing where it is not an index.
std::set<std::string> shards_of(const fs::path& index) {
  std::error_code failed;
  if (fs::file_size(index, failed) > kMaxIndex || failed) return {};
  std::ifstream file(index, std::ios::binary);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  std::set<std::string> shards;
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) return shards;
  for (const auto& shard : json["weight_map"]) {
    if (shard.is_string()) shards.insert(shard.get<std::string>());
  }
  return shards;
}

}  // namespace

Result<ModelFileSet> choose_files(const std::vector<RepoFile>& all, const std::string& tag,
                                  const std::string& who) {
  if (!tag.empty()) return choose_gguf(all, tag, who);
  const std::vector<RepoFile> weights = choose_safetensors(all);
  if (weights.empty()) {
    if (std::any_of(all.begin(), all.end(), is_gguf_model)) return choose_gguf(all, tag, who);
    return no_weights(all, who);
  }
  ModelFileSet chosen;
  std::copy_if(all.begin(), all.end(), std::back_inserter(chosen.files), is_small_file);
  const auto config = [](const RepoFile& file) { return file.path == "config.json"; };
  if (std::none_of(chosen.files.begin(), chosen.files.end(), config)) {
    return make_error(Code::kUnsupported,
                      "{} has {} but no config.json: not a model in Hugging Face's format", who,
                      weights.back().path);
  }
  chosen.files.insert(chosen.files.end(), weights.begin(), weights.end());
  return chosen;
}

bool has_tokenizer(const std::vector<RepoFile>& files) {
  return std::any_of(files.begin(), files.end(), [](const RepoFile& file) {
    return file.path == "tokenizer.json" || file.path == "tokenizer.model" || file.path == "vocab.json";
  });
}

std::vector<RepoFile> list_folder(const fs::path& folder) {
  std::vector<RepoFile> files;
  std::error_code failed;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, failed);
  for (; !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    std::error_code missing;
    if (it.depth() >= kMaxDepth) it.disable_recursion_pending();
    if (!it->is_regular_file(missing)) continue;  // follows links; a dangling one is no file
    RepoFile file;
    file.path = it->path().lexically_relative(folder).generic_string();
    const uintmax_t size = it->file_size(missing);
    if (!missing) file.size = size;
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

Result<std::optional<fs::path>> find_complete(const fs::path& folder, const std::string& tag,
                                              const std::string& who) {
  using Found = std::optional<fs::path>;
  const std::vector<RepoFile> all = list_folder(folder);
  const Result<ModelFileSet> chosen = choose_files(all, tag, who);
  if (!chosen.ok()) {
    const bool missing = chosen.error().code == Code::kNotFound || chosen.error().code == Code::kUnsupported;
    return missing ? Result<Found>(Found()) : Result<Found>(chosen.error());
  }
  if (!chosen->gguf.empty()) return Found(folder / chosen->gguf);
  bool weights = false;
  for (const RepoFile& file : chosen->files) {
    weights |= file.path.ends_with(".safetensors");
    if (!file.path.ends_with(".safetensors.index.json")) continue;
    const std::set<std::string> shards = shards_of(folder / file.path);
    if (shards.empty()) return Found();
    for (const std::string& shard : shards) {
      std::error_code ignored;
      if (!is_safe_relative_path(shard) || !fs::is_regular_file(folder / shard, ignored)) return Found();
    }
  }
  if (!weights || !has_tokenizer(chosen->files)) return Found();
  return Found(folder);
}

}  // namespace whippet
