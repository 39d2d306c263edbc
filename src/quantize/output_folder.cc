#include "quantize/output_folder.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "model/safetensors.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

// What a tokenizer, a template, a licence or a model's code may take; weights of other frameworks take more.
constexpr uintmax_t kMaxCopiedBytes = uintmax_t{64} << 20;

bool is_copied(const fs::directory_entry& entry) {
  std::error_code ignored;
  const std::string name = entry.path().filename().string();
  static constexpr const char* kReplaced[] = {"config.json", "quantize_config.json", "quant_config.json"};
  for (const char* replaced : kReplaced)
    if (name == replaced) return false;
  static constexpr const char* kWeights[] = {".safetensors", ".index.json", ".bin",  ".pt",      ".pth",
                                             ".ckpt",        ".gguf",       ".onnx", ".msgpack", ".h5"};
  for (const char* suffix : kWeights)
    if (name.ends_with(suffix)) return false;
  return name.front() != '.' && entry.is_regular_file(ignored) && entry.file_size(ignored) <= kMaxCopiedBytes;
}

Status copy_files(const fs::path& from, const fs::path& to) {
  std::error_code problem;
  for (fs::directory_iterator it(from, problem), end; !problem && it != end; it.increment(problem)) {
    if (!is_copied(*it)) continue;
    std::error_code copying;
    fs::copy_file(it->path(), to / it->path().filename(), copying);
    if (copying)
      return make_error(Code::kUnavailable, "cannot copy {} to {}: {}", it->path().string(), to.string(),
                        copying.message());
  }
  if (problem)
    return make_error(Code::kUnavailable, "cannot read the folder {}: {}", from.string(), problem.message());
  return {};
}

}  // namespace

Status check_writable(const Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const BlockSize block = storage_block(tensor.type);
    if (block.elements != 1 || block.bytes == 0)
      return make_error(Code::kUnsupported, "tensor {} has the type {}, which cannot be copied", name,
                        tensor.type_name);
  }
  return {};
}

Status write_model_folder(const Checkpoint& checkpoint, const fs::path& folder) {
  std::error_code problem;
  fs::remove_all(folder, problem);
  fs::create_directories(folder, problem);
  if (problem)
    return make_error(Code::kUnavailable, "cannot create {}: {}", folder.string(), problem.message());
  WH_TRY(copy_files(checkpoint.path, folder));
  std::vector<TensorView> tensors;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    tensors.push_back(tensor);
    tensors.back().name = name;
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  WH_TRY(write_safetensors(folder / "model.safetensors", tensors));
  std::ofstream config(folder / "config.json", std::ios::binary);
  config << checkpoint.config.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  config.close();
  if (!config)
    return make_error(Code::kResourceExhausted, "cannot write {}", (folder / "config.json").string());
  return {};
}

}  // namespace whippet
