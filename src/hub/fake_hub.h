// For tests: a hub that answers as Hugging Face does (on FakeServer), a folder that vanishes with the test,
// and a HubConfig that points at both.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <string>

#include "hub/environment.h"
#include "hub/fake_server.h"

namespace whippet {

class HubTestFolder {
 public:
  HubTestFolder();
  ~HubTestFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, const std::string& content);
std::string read_file(const std::filesystem::path& path);
std::string sha256_of(const std::string& content);
std::string git_sha1_of(const std::string& content);
// Bytes that compress badly and differ by seed.
std::string noise(size_t size, uint32_t seed = 1);
// Caches in `folder`, no pauses between attempts, no proxy, endless disk.
HubConfig test_config(const std::filesystem::path& folder);

// One repository "org/tiny" at one commit. Its state is changed only between requests.
class FakeHub {
 public:
  FakeHub();

  // A small file is named by its git SHA-1, a large one by its SHA-256.
  void add(const std::string& path, const std::string& content, bool large = false);
  // config.json, tokenizer.json, model.safetensors (64 KiB of noise), README.md and others that are not
  // needed.
  void add_model();
  // The next requests for `path` (below the repository) or for "api" get these answers first.
  void fail(const std::string& path, FakeResponse response);

  std::string commit = "0123456789abcdef0123456789abcdef01234567";
  std::string token;      // wanted of everybody, when not empty
  bool ranges = true;     // whether Range is understood
  bool checksums = true;  // whether the listing has sizes and checksums
  std::string cdn;        // large files are a redirect to this address
  std::string content_of(const std::string& path) const { return files_.at(path).content; }
  HubConfig config(const std::filesystem::path& folder) const;
  FakeServer& server() { return server_; }

 private:
  struct File {
    std::string content;
    bool large = false;
  };
  FakeResponse answer(const FakeRequest& request);
  FakeResponse listing() const;
  FakeResponse file(const FakeRequest& request, const std::string& path) const;

  std::map<std::string, File> files_;
  std::map<std::string, std::deque<FakeResponse>> faults_;
  FakeServer server_;  // last: its threads use the rest
};

}  // namespace whippet
