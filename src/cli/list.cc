// whippet list: the models on this machine.
#include <algorithm>

#include "base/progress.h"
#include "cli/command.h"
#include "cli/output.h"
#include "hub/hub.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(The models in the caches of this machine, those that other tools fetched among them.

Examples:
  whippet list
  whippet list --json)";

std::string table(const std::vector<CachedModel>& models) {
  size_t name = 4, revision = 8;
  for (const CachedModel& model : models) {
    name = std::max(name, model.name.size());
    revision = std::max(revision, model.revision.size());
  }
  std::string text = fmt::format("{:<{}}  {:<{}}  {:>10}\n", "NAME", name, "REVISION", revision, "SIZE");
  for (const CachedModel& model : models)
    text += fmt::format("{:<{}}  {:<{}}  {:>10}{}\n", model.name, name, model.revision, revision,
                        format_bytes(model.bytes), model.complete ? "" : "  incomplete");
  return text;
}

Result<int> run(bool as_json) {
  WH_ASSIGN(const std::vector<CachedModel> models, list_models(hub_config_from_environment()));
  if (!as_json) {
    if (models.empty()) {
      std::fprintf(stderr, "No models yet: `whippet pull` fetches the default one.\n");
      return kExitOk;
    }
    WH_TRY(write_output(table(models)));
    return kExitOk;
  }
  ordered_json list = ordered_json::array();
  for (const CachedModel& model : models)
    list.push_back({{"name", model.name},
                    {"revision", model.revision},
                    {"bytes", model.bytes},
                    {"path", model.path.string()},
                    {"complete", model.complete}});
  WH_TRY(write_output(json_text(list, 2) + "\n"));
  return kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  const CLI::Option* as_json = add_switch(app, "--json", "as JSON");
  return [as_json, &context] {
    const Result<int> code = run(as_json->count() > 0);
    return code.ok() ? *code : report_failure(context, code.error());
  };
}

}  // namespace

Command list_command() {
  return {.name = "list", .summary = "the models on this machine", .help = kHelp, .setup = setup};
}

}  // namespace whippet
