#include "model/packed_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/hash64.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/version.h"
#include "model/packed_io.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxNameLength = 60;

uint64_t hash_text(const std::string& text) { return hash64(std::as_bytes(std::span(text))); }

// The folder or file itself as a path of its own, whatever links lead there. A file that is a link keeps its
// name: caches keep content under names of digits.
Result<fs::path> own_path(const fs::path& path) {
  std::error_code problem;
  const fs::path whole = fs::absolute(path, problem).lexically_normal();
  if (problem) return make_error(Code::kNotFound, "{}", problem.message());
  const fs::path given = whole.has_filename() ? whole : whole.parent_path();
  const fs::path own = fs::is_directory(given, problem)
                           ? fs::canonical(given, problem)
                           : fs::canonical(given.parent_path(), problem) / given.filename();
  if (problem) return make_error(Code::kNotFound, "{}", problem.message());
  return own;
}

// The files that a checkpoint may be read from, sorted.
std::vector<fs::path> files_of(const fs::path& checkpoint) {
  std::error_code problem;
  if (!fs::is_directory(checkpoint, problem)) return {checkpoint};
  std::vector<fs::path> files;
  for (fs::directory_iterator it(checkpoint, problem), end; !problem && it != end; it.increment(problem)) {
    const std::string extension = it->path().extension().string();
    if (extension == ".safetensors" || extension == ".json" || extension == ".gguf")
      files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// "name size seconds.nanoseconds" of each file, links followed.
Result<std::string> state_of(const fs::path& checkpoint) {
  std::string text;
  for (const fs::path& file : files_of(checkpoint)) {
    struct stat info = {};
    if (::stat(file.c_str(), &info) != 0)
      return make_error(Code::kNotFound, "{} cannot be looked at", file.string());
    text += fmt::format("file {} {} {}.{}\n", file.filename().string(), info.st_size, info.st_mtim.tv_sec,
                        info.st_mtim.tv_nsec);
  }
  return text;
}

std::string plain_name(const std::string& model) {
  std::string name;
  for (const char c : model) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (plain || (!name.empty() && name.back() != '-')) name += plain ? c : '-';
  }
  return name.size() > kMaxNameLength ? name.substr(name.size() - kMaxNameLength) : name;
}

}  // namespace

PackedCache::PackedCache(const PackedPlace& place, const Checkpoint& checkpoint, Backend& backend,
                         const std::string& setting)
    : place_(place), backend_(backend) {
  const std::string form = backend.packed_form();
  if (place_.folder.empty() || form.empty()) return;
  const Result<fs::path> own = own_path(checkpoint.path);
  const Result<std::string> state = own.ok() ? state_of(*own) : Result<std::string>(own.error());
  if (!state.ok()) {
    log_warning("packed weights are not kept: {}", state.error().message);
    return;
  }
  checkpoint_ = own->string();
  // The name follows from what a user chose, the key also from what changes beneath: an old file is replaced.
  const std::string chosen = fmt::format("checkpoint {}\nsetting {}\nform {}\n", checkpoint_, setting, form);
  key_ = fmt::format("{}whippet {} {}\n{}", chosen, release(), commit(), *state);
  path_ =
      place_.folder / fmt::format("{}-{:016x}{}", plain_name(place_.model), hash_text(chosen), kPackedSuffix);
  read();
}

void PackedCache::read() {
  Result<PackedWeights> weights = read_packed(path_, key_);
  if (!weights.ok()) {
    std::error_code ignored;
    if (weights.error().code == Code::kNotFound && !fs::exists(path_, ignored)) return;
    const LogLevel level = weights.error().code == Code::kNotFound ? LogLevel::kInfo : LogLevel::kWarning;
    log(level, "packing anew, since {} cannot be used: {}", path_.string(), weights.error().message);
    return;
  }
  weights_ = std::move(*weights);
  for (const auto& [name, weight] : weights_) read_bytes_ += weight.storage.bytes();
  log_info("{} of packed weights read from {}", format_bytes(read_bytes_), path_.string());
}

std::optional<LinearWeight> PackedCache::take(const std::string& tensor, int32_t out, int32_t in) {
  if (path_.empty()) return std::nullopt;
  asked_.push_back(tensor);
  const auto found = weights_.find(tensor);
  if (found == weights_.end()) {
    if (read_bytes_ > 0 && complete_) log_warning("packing anew what {} lacks: {}", path_.string(), tensor);
    complete_ = false;
    return std::nullopt;
  }
  LinearWeight weight = std::move(found->second);
  weights_.erase(found);
  Status fits = weight.out == out && weight.in == in
                    ? backend_.adopt(weight)
                    : make_error(Code::kCorrupt, "a packed weight of [{}, {}], expected [{}, {}]", weight.out,
                                 weight.in, out, in);
  if (fits.ok()) return weight;
  if (complete_) log_warning("packing {} anew: {} has {}", tensor, path_.string(), fits.error().message);
  complete_ = false;
  return std::nullopt;
}

void PackedCache::keep(const std::vector<const LinearWeight*>& weights) {
  if (path_.empty() || complete_) return;
  uint64_t bytes = 0;
  for (const LinearWeight* weight : weights) bytes += weight->storage.bytes();
  if (bytes < place_.least_bytes) return;
  const Status written = write(weights);
  if (written.ok())
    log_info("{} of packed weights kept in {} for the next start", format_bytes(bytes), path_.string());
  else
    log_warning("packed weights are not kept for the next start: {}", written.error().message);
}

Status PackedCache::write(const std::vector<const LinearWeight*>& weights) const {
  PackedTable table;
  table.model = place_.model;
  table.checkpoint = checkpoint_;
  table.key = key_;
  return write_packed(path_, std::move(table), asked_, weights, place_.keep_free);
}

std::vector<PackedFile> list_packed(const fs::path& folder) {
  std::vector<PackedFile> files;
  std::error_code problem;
  for (fs::directory_iterator it(folder, problem), end; !problem && it != end; it.increment(problem)) {
    std::error_code ignored;
    if (it->path().extension() != kPackedSuffix || !it->is_regular_file(ignored)) continue;
    PackedFile file{.path = it->path(), .checkpoint = {}, .model = {}, .bytes = it->file_size(ignored)};
    if (const Result<PackedTable> table = read_packed_table(file.path); table.ok()) {
      file.checkpoint = table->checkpoint;
      file.model = table->model;
    }
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const PackedFile& a, const PackedFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace whippet
