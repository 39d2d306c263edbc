// One repository in a cache of Hugging Face's layout, read and written beside other tools:
//   <root>/models--org--name/blobs/<etag>                      the content, named by its checksum
//                            snapshots/<commit>/<file>         a link to ../../blobs/<etag>
//                            refs/<revision>                   the commit a branch or tag stood at
//   <root>/.locks/models--org--name/<etag>.lock                who fetches that blob now
// ModelScope's models are kept in the same layout below a root of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace whippet {

class RepoCache {
 public:
  // `repo` has passed parse_model_name; `main_branch` is what an empty revision means.
  RepoCache(std::filesystem::path root, std::string repo, std::string main_branch);

  const std::string& repo() const { return repo_; }
  const std::string& main_branch() const { return main_branch_; }
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path blob(const std::string& etag) const { return folder_ / "blobs" / etag; }
  std::filesystem::path snapshot(const std::string& commit) const { return folder_ / "snapshots" / commit; }
  std::filesystem::path lock(const std::string& etag) const;

  // The commit that `revision` (branch, tag, commit, an unambiguous beginning of a commit; empty: the main
  // branch) has here, if its snapshot exists.
  std::optional<std::string> commit_of(const std::string& revision) const;
  // Points refs/<revision> at a commit, atomically. A commit is no revision to note: nothing is written.
  Status write_ref(const std::string& revision, const std::string& commit) const;
  // snapshots/<commit>/<file> becomes a link to the blob (a copy where the disk has no links). Idempotent.
  Status link(const std::string& commit, const std::string& file, const std::string& etag) const;

  struct Ref {
    std::string revision, commit;
  };
  std::vector<Ref> refs() const;
  std::vector<std::string> commits() const;  // that have a snapshot, sorted

 private:
  std::string repo_, main_branch_;
  std::filesystem::path root_, folder_;
};

// "models--org--name" for "org/name", and back (nullopt: another kind of folder).
std::string repo_folder_name(const std::string& repo);
std::optional<std::string> repo_of_folder(const std::string& folder);

}  // namespace whippet
