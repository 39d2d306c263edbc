// Which files of a repository (or of a folder) make a model, and which of several GGUF files is meant. Pure:
// works on lists of names; used on what a hub lists and on what the disk holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace whippet {

struct RepoFile {
  std::string path;              // relative, '/' between parts; safe (is_safe_relative_path)
  std::optional<uint64_t> size;  // bytes
  std::string sha256;            // hex, or empty
  std::string git_sha1;          // hex, or empty
};

struct ModelFileSet {
  std::vector<RepoFile>
      files;         // small ones first, weights last: an interrupted pull is never taken for a model
  std::string gguf;  // the one file that is the model, or empty: the folder is
};

// `who` names the repository or folder in messages. Without a tag safetensors win over GGUF. Errors:
// kNotFound (the tag matches nothing; no weights), kInvalidArgument (several GGUF files match: they are
// listed), kUnsupported (split GGUF; only pickled weights: named, with what to do).
Result<ModelFileSet> choose_files(const std::vector<RepoFile>& all, const std::string& tag,
                                  const std::string& who);

// Whether the list has a tokenizer in a format that is read.
bool has_tokenizer(const std::vector<RepoFile>& files);

// Every regular file (links followed) at most three levels below `folder`.
std::vector<RepoFile> list_folder(const std::filesystem::path& folder);

// The model that a folder holds: its path or its one GGUF file. nullopt: not all of it is there (no weights,
// a shard or the tokenizer is missing). An error: it is there but ambiguous or unsupported.
Result<std::optional<std::filesystem::path>> find_complete(const std::filesystem::path& folder,
                                                           const std::string& tag, const std::string& who);

}  // namespace whippet
