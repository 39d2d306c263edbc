#include "cli/packed_files.h"

#include <algorithm>
#include <system_error>

#include "api/loaded_model.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

}  // namespace

CLI::Option* add_packed_cache(CLI::App& app) {
  return add_value(app, "--packed-cache", "DIR",
                   "where packed weights are; by default $XDG_CACHE_HOME/whippet/packed");
}

std::vector<PackedFile> packed_files(const CLI::Option& option, const Context& context) {
  std::string folder;
  if (const auto found = context.variables.find("WHIPPET_PACKED_CACHE"); found != context.variables.end())
    folder = found->second;
  if (option.count() > 0) folder = option.as<std::string>();
  if (folder == "off") return {};
  return list_packed(folder.empty() ? packed_folder() : fs::path(folder));
}

bool is_packed_of(const PackedFile& file, const CachedModel& model) {
  std::error_code problem;
  const fs::path own = fs::canonical(model.path, problem);
  if (problem || file.checkpoint.empty()) return false;
  const auto ends = std::mismatch(own.begin(), own.end(), file.checkpoint.begin(), file.checkpoint.end());
  return ends.first == own.end();
}

bool is_packed_of(const PackedFile& file, const std::string& name, const std::vector<CachedModel>& models) {
  if (file.model == name) return true;
  for (const CachedModel& model : models)
    if (model.name == name && is_packed_of(file, model)) return true;
  std::error_code problem;
  const fs::path path = fs::weakly_canonical(name, problem);
  return !problem && file.checkpoint == path;
}

}  // namespace whippet
