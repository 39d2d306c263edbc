#include "quantize/partial_folder.h"

#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

#include "model/safetensors.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Error cannot(const char* what, const fs::path& path, const std::error_code& problem) {
  return make_error(Code::kUnavailable, "cannot {} {}: {}", what, path.string(), problem.message());
}

json read_json_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return json::parse(text, nullptr, false);
}

Status write_text(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << '\n';
  file.close();
  if (file) return {};
  return make_error(Code::kResourceExhausted, "cannot write {}", path.string());
}

Status check_free(const fs::path& out) {
  std::error_code problem;
  if (!fs::exists(out, problem)) return {};
  if (fs::is_directory(out, problem) && fs::is_empty(out, problem)) return {};
  return make_error(Code::kInvalidArgument, "{} is there already: remove it, or name another folder",
                    out.string());
}

}  // namespace

Result<PartialFolder> PartialFolder::open(const fs::path& out, const json& settings) {
  PartialFolder folder;
  folder.out_ = (out.has_filename() ? out : out.parent_path());
  WH_TRY(check_free(folder.out_));
  folder.path_ = folder.out_.string() + ".partial";
  const fs::path said = folder.path_ / "settings.json";
  std::error_code problem;
  if (fs::exists(said, problem)) {
    if (read_json_file(said) == settings) return folder;
    return make_error(Code::kInvalidArgument,
                      "{} holds layers of a quantization with other settings, or of another model or text: "
                      "remove it to begin anew",
                      folder.path_.string());
  }
  fs::create_directories(folder.path_, problem);
  if (problem) return cannot("create", folder.path_, problem);
  WH_TRY(write_text(said, settings.dump()));
  return folder;
}

fs::path PartialFolder::file_of(int32_t layer, const char* kind) const {
  return path_ / fmt::format("layer-{}.{}", layer, kind);
}

// The tensors are the last to be written, and they appear at once.
bool PartialFolder::has(int32_t layer) const {
  std::error_code ignored;
  return fs::exists(file_of(layer, "safetensors"), ignored);
}

Status PartialFolder::save(int32_t layer, std::span<const OwnedTensor> tensors, const json& report) const {
  WH_TRY(write_text(file_of(layer, "json"), report.dump()));
  std::vector<TensorView> views;
  for (const OwnedTensor& tensor : tensors) views.push_back(tensor.view);
  return write_safetensors(file_of(layer, "safetensors"), views);
}

Result<json> PartialFolder::overlay(int32_t layer, Checkpoint& checkpoint) const {
  const fs::path path = file_of(layer, "safetensors");
  WH_ASSIGN(MappedFile file, MappedFile::open(path));
  WH_ASSIGN(std::vector<TensorView> tensors, parse_safetensors(file.bytes(), path.string()));
  for (TensorView& tensor : tensors) {
    std::string name = tensor.name;
    checkpoint.tensors.erase(name.substr(0, name.rfind('.')) + ".weight");
    checkpoint.tensors.insert_or_assign(std::move(name), std::move(tensor));
  }
  checkpoint.files.push_back(std::move(file));
  return read_json_file(file_of(layer, "json"));
}

Status PartialFolder::publish() const {
  std::error_code problem;
  fs::rename(result(), out_, problem);
  if (problem) return cannot("create", out_, problem);
  fs::remove_all(path_, problem);
  return {};
}

}  // namespace whippet
