// What both repository hubs have in common: a listing of files at a commit, and the pulling of those that
// make a model into a RepoCache. A hub is data (how it names URLs, secrets and errors), not a class.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "hub/environment.h"
#include "hub/http.h"
#include "hub/model_files.h"
#include "hub/model_name.h"
#include "hub/repo_cache.h"

namespace whippet {

struct Listing {
  std::string revision;  // that was asked for
  std::string commit;    // 40 hex digits
  std::vector<RepoFile> files;
  std::string licence;  // as the hub spells it, or empty
};

struct Repository {
  std::string name;    // "hf:org/name", for messages
  std::string secret;  // header line, or empty
  RepoCache cache;
  std::function<Result<Listing>(HttpClient&, const std::string& revision)> list;
  std::function<std::string(const Listing&, const RepoFile&)> file_url;
  // Fills size and checksum of a file that the listing left without; empty where the listing always has them.
  std::function<Result<RepoFile>(HttpClient&, const std::string& url, RepoFile)> look_at;
  // The error that a status means; `what` is the file asked for, or empty for the repository.
  std::function<Error(const HttpResponse&, const std::string& what)> explain;
};

struct Pulled {
  std::filesystem::path path;  // a snapshot, or the one GGUF file in it
  std::string commit;
  std::string licence;
};

// Asks the hub for `revision`, fetches what is missing of the model that `tag` selects, and notes the
// revision last: until then the cache offers what it offered before.
Result<Pulled> pull_repository(const Repository& repository, const std::string& revision,
                               const std::string& tag, const HubConfig& config);

// What the cache holds of it without any request; nullopt when it is not all there.
Result<std::optional<Pulled>> find_in_cache(const Repository& repository, const std::string& revision,
                                            const std::string& tag);

Repository hugging_face(const std::string& repo, const HubConfig& config);
Repository model_scope(const std::string& repo, const HubConfig& config);
// Of a name whose hub is one of these two. They keep a reference to `config`.
Repository repository_of(const ModelName& name, const HubConfig& config);
std::filesystem::path model_scope_cache(const HubConfig& config);

}  // namespace whippet
