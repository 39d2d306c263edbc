#include "hub/repository.h"

#include <algorithm>

#include "base/log.h"
#include "hub/digest.h"
#include "hub/download.h"
#include "hub/file_lock.h"
#include "hub/model_name.h"
#include "hub/output_file.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// What a blob is called: its checksum, as Hugging Face's ETags have it. Without one, its place in the
// repository.
std::string blob_name(const RepoFile& file, const std::string& commit) {
  if (!file.sha256.empty()) return file.sha256;
  if (!file.git_sha1.empty()) return file.git_sha1;
  Digest digest = Digest::sha256();
  digest.update(commit + "/" + file.path);
  return "unnamed-" + std::move(digest).hex();
}

// A blob that is there is whole, unless its disk lost part of it; the size tells.
bool has_blob(const fs::path& blob, const RepoFile& file) {
  std::error_code failed;
  if (!is_file(blob)) return false;
  return !file.size || (fs::file_size(blob, failed) == *file.size && !failed);
}

struct Pull {
  const Repository& repository;
  const HubConfig& config;
  HttpClient& client;
  const Listing& listing;

  Status fetch(const RepoFile& file, const std::string& label) const;
  Result<std::vector<RepoFile>> with_sizes(std::vector<RepoFile> files) const;
  Status check_space(const std::vector<RepoFile>& files) const;
};

Status Pull::fetch(const RepoFile& file, const std::string& label) const {
  const std::string etag = blob_name(file, listing.commit);
  const fs::path blob = repository.cache.blob(etag);
  WH_ASSIGN(const FileLock lock, FileLock::acquire(repository.cache.lock(etag), file.path, config));
  if (!has_blob(blob, file)) {
    Download download;
    download.url = repository.file_url(listing, file);
    download.secret = repository.secret;
    download.target = blob;
    download.name = file.path;
    download.label = label + file.path;
    download.size = file.size;
    download.sha256 = file.sha256;
    download.git_sha1 = file.sha256.empty() ? file.git_sha1 : "";
    download.explain = [&](const HttpResponse& response) { return repository.explain(response, file.path); };
    WH_TRY(download_file(client, download, config));
  }
  return repository.cache.link(listing.commit, file.path, etag);
}

Result<std::vector<RepoFile>> Pull::with_sizes(std::vector<RepoFile> files) const {
  for (RepoFile& file : files) {
    const bool known = file.size && !(file.sha256.empty() && file.git_sha1.empty());
    if (known || !repository.look_at) continue;
    const std::string url = repository.file_url(listing, file);
    WH_ASSIGN(file, repository.look_at(client, url, std::move(file)));
  }
  return files;
}

Status Pull::check_space(const std::vector<RepoFile>& files) const {
  uint64_t needed = 0;
  for (const RepoFile& file : files) {
    const fs::path blob = repository.cache.blob(blob_name(file, listing.commit));
    if (!file.size || has_blob(blob, file)) continue;
    std::error_code failed;
    const uintmax_t part = fs::file_size(fs::path(blob) += ".incomplete", failed);
    const uint64_t missing = *file.size - (failed ? 0 : std::min<uint64_t>(part, *file.size));
    if (__builtin_add_overflow(needed, missing, &needed)) needed = UINT64_MAX;
  }
  return needed == 0 ? Status() : check_free_space(repository.cache.folder(), needed, config);
}

Status check_listing(const Listing& listing, const std::string& name) {
  if (!is_commit(listing.commit)) {
    return make_error(Code::kCorrupt, "the hub names no commit for {}: '{}'", name,
                      listing.commit.substr(0, 80));
  }
  for (const RepoFile& file : listing.files) {
    if (!is_safe_relative_path(file.path)) {
      return make_error(Code::kCorrupt, "the hub lists a file of {} that would leave its folder: '{}'", name,
                        file.path.substr(0, 200));
    }
  }
  return {};
}

}  // namespace

Result<Pulled> pull_repository(const Repository& repository, const std::string& revision,
                               const std::string& tag, const HubConfig& config) {
  HttpClient client(config);
  WH_ASSIGN(const Listing listing, repository.list(client, revision));
  WH_TRY(check_listing(listing, repository.name));
  WH_ASSIGN(ModelFileSet chosen, choose_files(listing.files, tag, repository.name));
  if (chosen.gguf.empty() && !has_tokenizer(chosen.files)) {
    return make_error(Code::kUnsupported,
                      "{} has no tokenizer (tokenizer.json, tokenizer.model or vocab.json)", repository.name);
  }
  const Pull pull{repository, config, client, listing};
  WH_ASSIGN(chosen.files, pull.with_sizes(std::move(chosen.files)));
  WH_TRY(pull.check_space(chosen.files));
  for (size_t i = 0; i < chosen.files.size(); ++i) {
    WH_TRY(pull.fetch(chosen.files[i], fmt::format("[{}/{}] ", i + 1, chosen.files.size())));
  }
  fs::path path = repository.cache.snapshot(listing.commit) / chosen.gguf;
  if (chosen.gguf.empty()) {
    WH_ASSIGN(const auto found,
              find_complete(repository.cache.snapshot(listing.commit), tag, repository.name));
    if (!found) {
      return make_error(Code::kCorrupt,
                        "{} is not complete on the hub: a weight file that its index names is missing",
                        repository.name);
    }
    path = *found;
  }
  WH_TRY(repository.cache.write_ref(revision, listing.commit));
  return Pulled{path, listing.commit, listing.licence};
}

Repository repository_of(const ModelName& name, const HubConfig& config) {
  return name.hub == Hub::kModelScope ? model_scope(name.repo, config) : hugging_face(name.repo, config);
}

Result<std::optional<Pulled>> find_in_cache(const Repository& repository, const std::string& revision,
                                            const std::string& tag) {
  using Found = std::optional<Pulled>;
  const std::optional<std::string> commit = repository.cache.commit_of(revision);
  if (!commit) return Found();
  WH_ASSIGN(const auto path, find_complete(repository.cache.snapshot(*commit), tag, repository.name));
  if (!path) return Found();
  return Found(Pulled{*path, *commit, ""});
}

}  // namespace whippet
