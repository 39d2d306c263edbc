#include "model/checkpoint.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <system_error>
#include <utility>

#include "model/gguf.h"
#include "model/gguf_config.h"
#include "model/safetensors.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = size_t{4} << 20;
constexpr size_t kMaxIndexBytes = size_t{16} << 20;
constexpr int kMaxJsonDepth = 64;  // copying and printing a document recurse

Result<nlohmann::json> read_json(const fs::path& path, size_t max_bytes) {
  WH_ASSIGN(const MappedFile file, MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() > max_bytes) {
    return make_error(Code::kCorrupt, "{} has {} bytes, limit {}", path.string(), bytes.size(), max_bytes);
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  bool too_deep = false;
  const auto watch_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    too_deep |= depth > kMaxJsonDepth;
    return depth <= kMaxJsonDepth;
  };
  nlohmann::json value;
  try {
    value = nlohmann::json::parse(text, text + bytes.size(), watch_depth);
  } catch (const nlohmann::json::parse_error& error) {
    return make_error(Code::kCorrupt, "{} is not valid JSON at byte {}", path.string(), error.byte);
  }
  if (too_deep) return make_error(Code::kCorrupt, "{} nests deeper than {}", path.string(), kMaxJsonDepth);
  if (!value.is_object()) return make_error(Code::kCorrupt, "{} is not a JSON object", path.string());
  return value;
}

// Names of the regular files (or links to such) of a folder, sorted.
Result<std::vector<std::string>> list_files(const fs::path& folder) {
  std::error_code problem;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, problem), end; !problem && it != end; it.increment(problem)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) names.push_back(it->path().filename().string());
  }
  if (problem) {
    return make_error(Code::kNotFound, "cannot read the folder {}: {}", folder.string(), problem.message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> ending_in(const std::vector<std::string>& names, std::string_view suffix) {
  std::vector<std::string> out;
  std::copy_if(names.begin(), names.end(), std::back_inserter(out),
               [&](const std::string& name) { return name.ends_with(suffix); });
  return out;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<std::vector<TensorView>> map_safetensors(const fs::path& path, Checkpoint& out) {
  WH_ASSIGN(MappedFile file, MappedFile::open(path));
  WH_ASSIGN(std::vector<TensorView> tensors, parse_safetensors(file.bytes(), path.string()));
  out.files.push_back(std::move(file));
  return tensors;
}

Status open_single(const fs::path& path, Checkpoint& out) {
  WH_ASSIGN(std::vector<TensorView> tensors, map_safetensors(path, out));
  for (TensorView& tensor : tensors) {
    std::string name = tensor.name;
    out.tensors.emplace(std::move(name), std::move(tensor));
  }
  return {};
}

// A shard is a file of the folder itself: a name that leads elsewhere is an attack.
bool plain_file_name(const std::string& name) {
  return !name.empty() && name.size() < 256 && name.ends_with(".safetensors") && name.front() != '.' &&
         name.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
}

Status open_sharded(const fs::path& index_path, Checkpoint& out) {
  WH_ASSIGN(const nlohmann::json index, read_json(index_path, kMaxIndexBytes));
  const auto weight_map = index.find("weight_map");
  if (weight_map == index.end() || !weight_map->is_object()) {
    return make_error(Code::kCorrupt, "{} has no weight_map", index_path.string());
  }
  std::map<std::string, std::vector<std::string>> names_of_shard;
  for (const auto& [name, shard] : weight_map->items()) {
    if (!shard.is_string() || !plain_file_name(shard.get<std::string>())) {
      return make_error(Code::kCorrupt,
                        "{}: the tensor '{}' is not given the plain name of a .safetensors file",
                        index_path.string(), name);
    }
    names_of_shard[shard.get<std::string>()].push_back(name);
  }
  for (const auto& [shard, names] : names_of_shard) {
    const fs::path path = index_path.parent_path() / shard;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
      return make_error(Code::kNotFound, "the shard {} that {} names is missing: download the model again",
                        path.string(), index_path.filename().string());
    }
    WH_ASSIGN(std::vector<TensorView> tensors, map_safetensors(path, out));
    std::unordered_map<std::string_view, TensorView*> by_name;
    for (TensorView& tensor : tensors) by_name.emplace(tensor.name, &tensor);
    for (const std::string& name : names) {
      const auto found = by_name.find(name);
      if (found == by_name.end()) {
        return make_error(Code::kCorrupt, "the tensor '{}' is not in {}, where {} places it", name,
                          path.string(), index_path.filename().string());
      }
      out.tensors.emplace(name, *found->second);
    }
  }
  return {};
}

Result<Checkpoint> open_gguf(const fs::path& path) {
  Checkpoint out;
  out.container = Checkpoint::Container::kGguf;
  out.path = path;
  WH_ASSIGN(MappedFile mapped, MappedFile::open(path));
  WH_ASSIGN(GgufFile file, parse_gguf(mapped.bytes(), path.string()));
  WH_ASSIGN(out.config, gguf_config(file));
  out.files.push_back(std::move(mapped));
  out.gguf = std::move(file.metadata);
  for (TensorView& tensor : file.tensors) {
    std::string name = tensor.name;
    out.tensors.emplace(std::move(name), std::move(tensor));
  }
  return out;
}

// Older GPTQ and AWQ checkpoints say how they were quantised in a file of its own.
Status read_quantization_config(const fs::path& folder, const std::vector<std::string>& files,
                                nlohmann::json& config) {
  const auto said = config.find("quantization_config");
  if (said != config.end() && !said->is_null()) return {};
  for (const char* name : {"quantize_config.json", "quant_config.json"}) {
    if (!contains(files, name)) continue;
    WH_ASSIGN(config["quantization_config"], read_json(folder / name, kMaxConfigBytes));
    return {};
  }
  return {};
}

Result<Checkpoint> open_safetensors(const fs::path& folder, const std::vector<std::string>& files) {
  Checkpoint out;
  out.path = folder;
  if (!contains(files, "config.json")) {
    return make_error(Code::kNotFound, "{} has safetensors but no config.json, which says what the model is",
                      folder.string());
  }
  WH_ASSIGN(out.config, read_json(folder / "config.json", kMaxConfigBytes));
  WH_TRY(read_quantization_config(folder, files, out.config));
  if (contains(files, "model.safetensors.index.json")) {
    WH_TRY(open_sharded(folder / "model.safetensors.index.json", out));
    return out;
  }
  const std::vector<std::string> weights = ending_in(files, ".safetensors");
  if (weights.size() > 1 && !contains(weights, "model.safetensors")) {
    return make_error(Code::kInvalidArgument,
                      "{} has {} safetensors files, no model.safetensors and no model.safetensors.index.json "
                      "to say which tensors are where",
                      folder.string(), weights.size());
  }
  const std::string name = contains(weights, "model.safetensors") ? "model.safetensors" : weights.front();
  WH_TRY(open_single(folder / name, out));
  return out;
}

// A folder without weights that can be read: says what is there and what to do about it.
Error unreadable_folder(const fs::path& folder, const std::vector<std::string>& files) {
  for (const char* suffix : {".bin", ".pt", ".pth", ".ckpt"}) {
    const std::vector<std::string> pickled = ending_in(files, suffix);
    if (pickled.empty()) continue;
    return make_error(
        Code::kUnsupported,
        "{} has its weights as pickled {}, which can run code when read and is refused; convert it "
        "once: python3 -c \"from transformers import AutoModelForCausalLM as M; "
        "M.from_pretrained('{}').save_pretrained('{}', safe_serialization=True)\"",
        folder.string(), pickled.front(), folder.string(), folder.string());
  }
  return make_error(Code::kNotFound,
                    "{} holds no model: expected config.json with *.safetensors, or one .gguf",
                    folder.string());
}

Result<Checkpoint> open_folder(const fs::path& folder) {
  WH_ASSIGN(const std::vector<std::string> files, list_files(folder));
  const std::vector<std::string> ggufs = ending_in(files, ".gguf");
  const bool safetensors =
      contains(files, "model.safetensors.index.json") || !ending_in(files, ".safetensors").empty();
  if (safetensors && (ggufs.empty() || contains(files, "config.json")))
    return open_safetensors(folder, files);
  if (ggufs.size() == 1) return open_gguf(folder / ggufs.front());
  if (ggufs.size() > 1) {
    return make_error(Code::kInvalidArgument, "{} has several GGUF files, name one of them: {}",
                      folder.string(), fmt::join(ggufs, ", "));
  }
  return unreadable_folder(folder, files);
}

}  // namespace

const TensorView* Checkpoint::find(std::string_view name) const {
  const auto found = tensors.find(std::string(name));
  return found == tensors.end() ? nullptr : &found->second;
}

Result<const TensorView*> Checkpoint::require(std::string_view name, std::span<const int64_t> shape) const {
  const TensorView* tensor = find(name);
  if (tensor == nullptr) return make_error(Code::kNotFound, "the checkpoint has no tensor {}", name);
  if (!std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end())) {
    return make_error(Code::kCorrupt, "tensor {}: expected shape [{}], found [{}]", name,
                      fmt::join(shape, ", "), fmt::join(tensor->shape, ", "));
  }
  return tensor;
}

Result<Checkpoint> open_checkpoint(const std::filesystem::path& path) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (fs::is_directory(status)) return open_folder(path);
  if (!fs::exists(status)) return make_error(Code::kNotFound, "there is no model at {}", path.string());
  const std::string extension = path.extension().string();
  if (extension == ".gguf") return open_gguf(path);
  if (extension == ".safetensors") {
    return make_error(Code::kInvalidArgument,
                      "{} is one file of a model: name the folder that also holds its "
                      "config.json",
                      path.string());
  }
  for (const char* pickled : {".bin", ".pt", ".pth", ".ckpt"}) {
    if (extension == pickled) return unreadable_folder(path.parent_path(), {path.filename().string()});
  }
  return make_error(Code::kUnsupported, "{} is neither a folder with safetensors nor a .gguf file",
                    path.string());
}

}  // namespace whippet
