#include "hub/repo_cache.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "hub/model_name.h"
#include "hub/output_file.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShortestCommit = 7;
constexpr const char* kPrefix = "models--";

// The first word of a small file; empty when it is not a commit.
std::string read_commit(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file.width(64);
  file >> word;
  return is_commit(word) ? word : "";
}

// Other tools may read the cache at this moment: a name that is taken is taken by a whole file or a whole
// link.
fs::path temporary_beside(const fs::path& path) {
  // Threads of one process pull at once too: the thread's id, not the process's. (gettid(2))
  return path.parent_path() / fmt::format(".{}.{}.tmp", path.filename().string(), ::gettid());
}

}  // namespace

std::string repo_folder_name(const std::string& repo) {
  const size_t slash = repo.find('/');
  if (slash == std::string::npos) return kPrefix + repo;
  return fmt::format("{}{}--{}", kPrefix, repo.substr(0, slash), repo.substr(slash + 1));
}

std::optional<std::string> repo_of_folder(const std::string& folder) {
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  const std::string repo = folder.substr(std::string_view(kPrefix).size());
  const size_t dashes = repo.find("--");
  if (repo.empty()) return std::nullopt;
  if (dashes == std::string::npos) return repo;
  return fmt::format("{}/{}", repo.substr(0, dashes), repo.substr(dashes + 2));
}

RepoCache::RepoCache(fs::path root, std::string repo, std::string main_branch)
    : repo_(std::move(repo)),
      main_branch_(std::move(main_branch)),
      root_(std::move(root)),
      folder_(root_ / repo_folder_name(repo_)) {}

fs::path RepoCache::lock(const std::string& etag) const {
  return root_ / ".locks" / repo_folder_name(repo_) / (etag + ".lock");
}

std::optional<std::string> RepoCache::commit_of(const std::string& revision) const {
  std::error_code ignored;
  const std::string wanted = revision.empty() ? main_branch_ : revision;
  if (!is_safe_relative_path(wanted)) return std::nullopt;
  const std::string commit = is_commit(wanted) ? wanted : read_commit(folder_ / "refs" / wanted);
  if (!commit.empty() && fs::is_directory(snapshot(commit), ignored)) return commit;
  if (wanted.size() < kShortestCommit) return std::nullopt;
  std::optional<std::string> found;
  for (const std::string& known : commits()) {
    if (!known.starts_with(wanted)) continue;
    if (found) return std::nullopt;
    found = known;
  }
  return found;
}

Status RepoCache::write_ref(const std::string& revision, const std::string& commit) const {
  const std::string name = revision.empty() ? main_branch_ : revision;
  if (name == commit || !is_safe_relative_path(name)) return {};
  const fs::path path = folder_ / "refs" / name;
  if (read_commit(path) == commit) return {};
  const fs::path temporary = temporary_beside(path);
  {
    WH_ASSIGN(OutputFile file, OutputFile::open(temporary));
    WH_TRY(file.truncate(0));
    WH_TRY(file.write_at(0, commit));
    WH_TRY(file.commit(path));
  }
  return {};
}

Status RepoCache::link(const std::string& commit, const std::string& file, const std::string& etag) const {
  const fs::path path = snapshot(commit) / file;
  WH_TRY(make_folders(path.parent_path()));
  const fs::path target = blob(etag).lexically_relative(path.parent_path());
  std::error_code failed;
  if (fs::read_symlink(path, failed) == target && !failed && fs::exists(path, failed)) return {};
  const fs::path temporary = temporary_beside(path);
  fs::remove(temporary, failed);
  fs::create_symlink(target, temporary, failed);
  if (failed) {
    fs::copy_file(blob(etag), temporary, fs::copy_options::overwrite_existing, failed);
    if (failed) {
      fs::remove(temporary, failed);
      return make_error(Code::kUnavailable, "cannot put {} into {}", file, snapshot(commit).string());
    }
  }
  fs::rename(temporary, path, failed);
  if (failed) return make_error(Code::kUnavailable, "cannot create {}: {}", path.string(), failed.message());
  sync_folder(path.parent_path());
  return {};
}

std::vector<RepoCache::Ref> RepoCache::refs() const {
  std::vector<Ref> refs;
  std::error_code failed;
  const fs::path folder = folder_ / "refs";
  fs::recursive_directory_iterator it(folder, failed);
  for (; !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    const std::string commit = read_commit(it->path());
    if (!commit.empty()) refs.push_back({it->path().lexically_relative(folder).generic_string(), commit});
  }
  std::sort(refs.begin(), refs.end(), [](const Ref& a, const Ref& b) { return a.revision < b.revision; });
  return refs;
}

std::vector<std::string> RepoCache::commits() const {
  std::vector<std::string> commits;
  std::error_code failed;
  fs::directory_iterator it(folder_ / "snapshots", failed);
  for (; !failed && it != fs::directory_iterator(); it.increment(failed)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (is_commit(name) && it->is_directory(ignored)) commits.push_back(name);
  }
  std::sort(commits.begin(), commits.end());
  return commits;
}

}  // namespace whippet
