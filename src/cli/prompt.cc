// whippet prompt: the prompt templates there are, and what each costs in tokens.
#include "api/prompt.h"

#include <algorithm>
#include <optional>

#include "api/loaded_model.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/lines.h"
#include "cli/output.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(The prompt templates that a server or a chat can be told to use: "default" is the model's own, "minimal"
the same without the system message that it puts before chats that bring none, and --prompt-template-dir
holds more. A folder with only tokenizer files is enough.

With --compare, the tokens of every template on the same chats, and what each saves over the default one.
The chats are the lines of --prompts FILE: a text, {"prompt": "..."} or {"messages": [...], "tools": [...]};
without it, a short question.

Examples:
  whippet prompt --compare
  whippet prompt org/name --compare --prompts questions.jsonl
  whippet prompt org/name --prompt-template-dir ./prompts --compare --prompts questions.jsonl --json)";

constexpr const char* kShortQuestion = "What is the capital of France?";

struct Options {
  EngineOptions engine;
  CLI::Option* compare;
  CLI::Option* prompts;
  CLI::Option* json;
};

// What one template makes of all chats.
struct Cost {
  const PromptTemplate* prompt;
  int64_t tokens = 0;
  std::optional<Error> error = {};  // the first
};

Result<TemplateVariables> chat_of(const std::string& line) {
  ordered_json object = {{"prompt", line}};
  if (line.find_first_not_of(" \t") != std::string::npos && line[line.find_first_not_of(" \t")] == '{') {
    WH_ASSIGN(object, parse_object(line));
  }
  if (object.contains("messages")) return object;
  if (!object.contains("prompt") || !object["prompt"].is_string())
    return make_error(Code::kInvalidArgument, R"(expected {{"prompt": "..."}} or {{"messages": [...]}})");
  return TemplateVariables{{"messages", {{{"role", "user"}, {"content", object["prompt"]}}}}};
}

void add_chat(const ModelFiles& files, const Tokenizer& tokenizer, const TemplateVariables& chat,
              std::vector<Cost>& costs) {
  for (Cost& cost : costs) {
    const Result<MarkedText> text = render_chat(files, chat, cost.prompt->name);
    if (text.ok()) cost.tokens += static_cast<int64_t>(tokenizer.encode(*text).size());
    if (!text.ok() && !cost.error) cost.error = text.error();
  }
}

// The number of chats.
Result<int64_t> measure(const ModelFiles& files, const Options& options, std::vector<Cost>& costs) {
  WH_ASSIGN(const Tokenizer* tokenizer, require_tokenizer(files));
  if (options.prompts->count() == 0) {
    WH_ASSIGN(const TemplateVariables chat, chat_of(kShortQuestion));
    add_chat(files, *tokenizer, chat, costs);
    return int64_t{1};
  }
  const auto path = options.prompts->as<std::string>();
  WH_ASSIGN(LineReader reader, LineReader::open(path));
  int64_t chats = 0;
  for (std::string line; reader.next(line); ++chats) {
    const Result<TemplateVariables> chat = chat_of(line);
    if (!chat.ok())
      return make_error(Code::kInvalidArgument, "{}, line {}: {}", path, reader.number(),
                        chat.error().message);
    add_chat(files, *tokenizer, *chat, costs);
  }
  WH_TRY(reader.status());
  if (chats == 0) return make_error(Code::kInvalidArgument, "{} has no lines", path);
  return chats;
}

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

ordered_json costs_to_json(const std::vector<Cost>& costs, int64_t chats) {
  const Cost& usual = costs.front();
  ordered_json list = ordered_json::array();
  for (const Cost& cost : costs) {
    ordered_json entry = {{"name", cost.prompt->name}, {"origin", cost.prompt->origin}};
    if (cost.error) {
      entry["error"] = cost.error->message;
    } else {
      entry["tokens"] = cost.tokens;
      entry["tokens_per_chat"] = share(cost.tokens, chats);
      if (!usual.error) {
        entry["saved"] = usual.tokens - cost.tokens;
        entry["saved_per_chat"] = share(usual.tokens - cost.tokens, chats);
        entry["saved_share"] = share(usual.tokens - cost.tokens, usual.tokens);
      }
    }
    list.push_back(std::move(entry));
  }
  return {{"chats", chats}, {"templates", list}};
}

std::string costs_to_table(const std::vector<Cost>& costs, int64_t chats) {
  size_t name = 8;
  for (const Cost& cost : costs) name = std::max(name, cost.prompt->name.size());
  std::string text =
      fmt::format("{} chat{}\n{:<{}}  {:>10}  {:>10}  {:>10}  {:>10}  {:>7}\n", chats, chats == 1 ? "" : "s",
                  "TEMPLATE", name, "TOKENS", "A CHAT", "SAVED", "A CHAT", "SHARE");
  const Cost& usual = costs.front();
  for (const Cost& cost : costs) {
    text += fmt::format("{:<{}}  ", cost.prompt->name, name);
    if (cost.error) {
      text += fmt::format("error: {}\n", cost.error->message);
      continue;
    }
    text += fmt::format("{:>10}  {:>10.1f}", cost.tokens, share(cost.tokens, chats));
    const int64_t saved = usual.tokens - cost.tokens;
    if (&cost != &usual && !usual.error)
      text += fmt::format("  {:>10}  {:>10.1f}  {:>6.1f}%", saved, share(saved, chats),
                          100 * share(saved, usual.tokens));
    text += '\n';
  }
  return text;
}

Status list_templates(const PromptTemplates& templates, bool as_json) {
  ordered_json list = ordered_json::array();
  std::string text;
  for (const PromptTemplate& prompt : templates.all()) {
    list.push_back({{"name", prompt.name},
                    {"origin", prompt.origin},
                    {"description", prompt.description},
                    {"summary", prompt.summary()}});
    text += fmt::format("{:<16}  {} ({}){}{}\n", prompt.name, prompt.summary(), prompt.origin,
                        prompt.description.empty() ? "" : ": ", prompt.description);
  }
  return as_json ? write_json_line({{"templates", list}}) : write_output(text);
}

Result<int> run(const Options& options, const EngineConfig& config) {
  WH_ASSIGN(const ResolvedModel source, find_model(config));
  WH_ASSIGN(const ModelFiles files, read_model_files(source.path, nullptr,
                                                     {.generation_config = "none",
                                                      .chat_template = config.chat_template,
                                                      .prompt_template_dir = config.prompt_template_dir}));
  const bool as_json = options.json->count() > 0;
  if (options.compare->count() == 0) {
    WH_TRY(list_templates(files.prompts, as_json));
    return kExitOk;
  }
  std::vector<Cost> costs;
  for (const PromptTemplate& prompt : files.prompts.all()) costs.push_back({.prompt = &prompt});
  WH_ASSIGN(const int64_t chats, measure(files, options, costs));
  WH_TRY(as_json ? write_json_line(costs_to_json(costs, chats)) : write_output(costs_to_table(costs, chats)));
  const bool failed =
      std::any_of(costs.begin(), costs.end(), [](const Cost& cost) { return cost.error.has_value(); });
  return failed ? kExitFailed : kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  std::vector<std::string> knobs = EngineOptions::model_knobs();
  knobs.push_back("chat_template");
  knobs.push_back("prompt_template_dir");
  const Options options{.engine = EngineOptions(app, context, knobs),
                        .compare = add_switch(app, "--compare", "tokens of every template on the same chats"),
                        .prompts = add_value(app, "--prompts", "FILE", "the chats to compare on, one a line"),
                        .json = add_switch(app, "--json", "one JSON object instead of a table")};
  return [options, &app, &context] {
    if (options.prompts->count() > 0 && options.compare->count() == 0)
      return report_usage(context, app, make_error(Code::kInvalidArgument, "--prompts goes with --compare"));
    return run_with_config(options.engine, app, context,
                           [&](const EngineConfig& config) { return run(options, config); });
  };
}

}  // namespace

Command prompt_command() {
  return {.name = "prompt",
          .summary = "prompt templates, and what each costs in tokens",
          .help = kHelp,
          .setup = setup};
}

}  // namespace whippet
