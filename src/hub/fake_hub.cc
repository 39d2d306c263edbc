#include "hub/fake_hub.h"

#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "base/check.h"
#include "hub/digest.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kRepo = "org/tiny";

}  // namespace

HubTestFolder::HubTestFolder() {
  std::string name = (fs::temp_directory_path() / "whippet_hub_XXXXXX").string();
  WH_CHECK(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

HubTestFolder::~HubTestFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void write_file(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string sha256_of(const std::string& content) {
  Digest digest = Digest::sha256();
  digest.update(content);
  return std::move(digest).hex();
}

std::string git_sha1_of(const std::string& content) {
  Digest digest = Digest::git_blob(content.size());
  digest.update(content);
  return std::move(digest).hex();
}

std::string noise(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

HubConfig test_config(const fs::path& folder) {
  HubConfig config;
  config.hf_endpoint = config.ms_endpoint = config.pypi_index = "http://127.0.0.1:9";
  config.hf_cache = folder / "huggingface" / "hub";
  config.whippet_cache = folder / "whippet";
  config.no_proxy = "*";
  config.sleep = [](std::chrono::milliseconds) {};
  config.free_bytes = [](const fs::path&) { return uint64_t{1} << 50; };
  return config;
}

FakeHub::FakeHub() : server_([this](const FakeRequest& request) { return answer(request); }) {}

void FakeHub::add(const std::string& path, const std::string& content, bool large) {
  files_[path] = {content, large};
}

void FakeHub::add_model() {
  add("config.json", R"({"model_type": "llama"})");
  add("tokenizer.json", R"({"version": "1.0"})");
  add("model.safetensors", noise(64 << 10), true);
  add("README.md", "# Tiny");
  add("pytorch_model.bin", noise(1000), true);
  add("onnx/model.onnx", noise(1000), true);
}

void FakeHub::fail(const std::string& path, FakeResponse response) {
  faults_[path].push_back(std::move(response));
}

HubConfig FakeHub::config(const fs::path& folder) const {
  HubConfig config = test_config(folder);
  config.hf_endpoint = server_.url();
  return config;
}

FakeResponse FakeHub::answer(const FakeRequest& request) {
  const std::string api = std::string("/api/models/") + kRepo + "/revision/";
  const std::string resolve = "/" + std::string(kRepo) + "/resolve/" + commit + "/";
  const bool is_api = request.path.starts_with(api);
  const std::string path = request.path.starts_with(resolve) ? request.path.substr(resolve.size()) : "";
  std::deque<FakeResponse>& faults = faults_[is_api ? "api" : path];
  if (!faults.empty()) {
    FakeResponse fault = faults.front();
    faults.pop_front();
    return fault;
  }
  if (!token.empty() && request.header("authorization") != "Bearer " + token) {
    return {401, "{}", {{"X-Error-Code", "GatedRepo"}}};
  }
  if (is_api) {
    const std::string revision = request.path.substr(api.size());
    if (revision == "main" || revision == commit || revision == "refs/pr/1") return listing();
    return {404, "{}", {{"X-Error-Code", "RevisionNotFound"}}};
  }
  if (request.path.starts_with("/api/")) return {401, "{}", {{"X-Error-Code", "RepoNotFound"}}};
  if (!files_.contains(path)) return {404, "", {{"X-Error-Code", "EntryNotFound"}}};
  return file(request, path);
}

FakeResponse FakeHub::listing() const {
  json siblings = json::array();
  for (const auto& [path, entry] : files_) {
    json sibling = {{"rfilename", path}};
    if (checksums) {
      sibling["size"] = entry.content.size();
      sibling["blobId"] = git_sha1_of(entry.large ? "a pointer" : entry.content);
      if (entry.large) {
        sibling["lfs"] = {
            {"sha256", sha256_of(entry.content)}, {"size", entry.content.size()}, {"pointerSize", 9}};
      }
    }
    siblings.push_back(sibling);
  }
  const json answer = {
      {"id", kRepo}, {"sha", commit}, {"siblings", siblings}, {"tags", {"license:apache-2.0"}}};
  return {200, answer.dump(), {{"Content-Type", "application/json"}}};
}

FakeResponse FakeHub::file(const FakeRequest& request, const std::string& path) const {
  const File& entry = files_.at(path);
  const bool redirect = entry.large && !cdn.empty();
  FakeResponse response = redirect ? FakeResponse{302, "", {{"Location", cdn + "/" + path + "?signature=s"}}}
                                   : serve_file(request, entry.content, ranges);
  response.headers.emplace_back("X-Repo-Commit", commit);
  if (entry.large) {
    response.headers.emplace_back("X-Linked-ETag", '"' + sha256_of(entry.content) + '"');
    response.headers.emplace_back("X-Linked-Size", std::to_string(entry.content.size()));
  } else {
    response.headers.emplace_back("ETag", '"' + git_sha1_of(entry.content) + '"');
  }
  return response;
}

}  // namespace whippet
