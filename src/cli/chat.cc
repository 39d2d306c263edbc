// whippet chat: talk to a model in the terminal.
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "api/json_file.h"
#include "api/loaded_model.h"
#include "cli/chat_loop.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/failure.h"
#include "cli/sampling_options.h"
#include "engine/sampling_check.h"
#include "whippet/whippet.h"

namespace whippet {
namespace {

constexpr const char* kHelp =
    R"(Talk to a model in the terminal.

Answers come as they are made. Ctrl-C stops an answer, Ctrl-D or /bye leaves, /help lists the other commands.
The prompt shows how many tokens of the context the chat takes; when it is full you are asked before the
oldest turns go. A line that ends in \ goes on, and """ opens and closes a message of several lines.
What a model thinks before it answers is folded to a line, /think shows it.
Standard input that is no terminal is read one message a line. Sampling is the checkpoint's own default, else
temperature 0.2 and top_p 0.9.

Examples:
  whippet chat
  whippet chat Qwen/Qwen2.5-0.5B-Instruct --system "You answer in one sentence."
  whippet chat --once "What is the capital of France?" --stats
  whippet chat Qwen/Qwen3-0.6B --chat-template-kwargs '{"enable_thinking": false}')";

// Where the checkpoint names no sampling: small models wander off at temperature 1.
constexpr float kTemperature = 0.2f;
constexpr float kTopP = 0.9f;

struct Options {
  EngineOptions engine;
  SamplingOptions sampling;
  CLI::Option* once;
  CLI::Option* system;
  CLI::Option* stats;
  CLI::Option* history;
  CLI::Option* kwargs;
};

Result<SamplingParams> sampling_of(const Options& options, const Engine& engine) {
  SamplingParams params = engine.default_sampling_params();
  const auto info = nlohmann::json::parse(engine.model_info_json());
  if (info["default_sampling"]["named"].empty()) {
    params.temperature = kTemperature;
    params.top_p = kTopP;
  }
  WH_TRY(options.sampling.apply(params));
  return params;
}

Status check_options(const Options& options) {
  SamplingParams params;
  WH_TRY(options.sampling.apply(params));
  WH_TRY(check_sampling(params, INT32_MAX, true));
  if (options.once->count() > 0 && options.once->as<std::string>().empty())
    return make_error(Code::kInvalidArgument, "--once: the message is empty");
  if (options.kwargs->count() == 0) return {};
  const auto kwargs = parse_json<nlohmann::json>(options.kwargs->as<std::string>());
  if (!kwargs.ok() || !kwargs->is_object())
    return make_error(Code::kInvalidArgument, "--chat-template-kwargs: expected a JSON object");
  return {};
}

std::filesystem::path history_file(const Options& options, const Context& context) {
  if (options.history->count() > 0) return options.history->as<std::string>();
  return context.state_folder.empty() ? std::filesystem::path() : context.state_folder / "chat_history";
}

void greet(const Engine& engine) {
  const auto info = nlohmann::json::parse(engine.model_info_json());
  std::fprintf(stderr, "%s on %s\n/help lists the commands, Ctrl-C stops an answer, Ctrl-D leaves.\n",
               info["model"].get<std::string>().c_str(), info["device"].get<std::string>().c_str());
}

Result<int> run(const Options& options, const Context& context, EngineConfig config) {
  if (config.max_num_seqs == 0) config.max_num_seqs = 1;  // one answer at a time: a small cache
  WH_TRY(find_model(config));                             // fetches it while Ctrl-C still ends the program
  Interrupts interrupts;
  Engine engine(config);
  if (interrupts.take()) return kExitFailed;
  WH_ASSIGN(SamplingParams params, sampling_of(options, engine));
  ChatSession session(engine, std::move(params), options.system->as<std::string>(),
                      options.kwargs->as<std::string>());
  LineEditor editor(options.once->count() > 0 ? std::filesystem::path() : history_file(options, context));
  ChatLoop loop(session, editor, interrupts, options.stats->count() > 0);
  if (options.once->count() > 0) {
    WH_TRY(loop.once(options.once->as<std::string>()));
    return kExitOk;
  }
  if (editor.interactive()) greet(engine);
  WH_TRY(loop.run());
  return kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  CLI::Option* once = add_value(app, "--once", "TEXT", "send one message, print the answer, and leave");
  CLI::Option* system = add_value(app, "--system", "TEXT", "the system message");
  CLI::Option* stats = add_switch(app, "--stats", "counts and times after each answer");
  CLI::Option* history = add_value(app, "--history", "FILE", "the file that keeps what was typed; '': none");
  CLI::Option* kwargs =
      add_value(app, "--chat-template-kwargs", "JSON", "variables for the chat template, a JSON object");
  const Options options{.engine = EngineOptions(app, context),
                        .sampling = SamplingOptions(app, {"n", "logprobs", "prompt_logprobs"}),
                        .once = once,
                        .system = system,
                        .stats = stats,
                        .history = history,
                        .kwargs = kwargs};
  return [options, &app, &context] {
    const Status checked = check_options(options);
    if (!checked.ok()) return report_usage(context, app, checked.error());
    return run_with_config(options.engine, app, context, [&](const EngineConfig& config) {
      return with_failures([&] { return run(options, context, config); });
    });
  };
}

}  // namespace

Command chat_command() {
  return {.name = "chat",
          .summary = "talk to a model in the terminal",
          .help = kHelp,
          .setup = setup,
          .default_log_level = "warning"};
}

}  // namespace whippet
