// whippet render: chats as the model's template writes them.
#include "api/loaded_model.h"
#include "api/prompt.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/lines.h"
#include "cli/output.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(Chats as the model's chat template writes them. A folder with only tokenizer files is enough.

With --jsonl, one JSON object a line in and out:
  {"messages": [{"role": "user", "content": "..."}], "tools": [...], "add_generation_prompt": true,
   any other variable of the template} -> {"text": "...", "ids": [...]}
  add_generation_prompt is true where it is not given. What users wrote never becomes a control token: the
  ids of a message that spells <|im_end|> hold that spelling as text.
  A line that is wrong gives {"error": ..., "line": N}, and the exit code is 1.
Without it, standard input is one such object, and the text alone is printed.

Examples:
  echo '{"messages": [{"role": "user", "content": "Hi"}]}' | whippet render
  whippet render org/name --jsonl < chats.jsonl
  whippet render ./folder --chat-template my.jinja --jsonl < chats.jsonl)";

struct Options {
  EngineOptions engine;
  CLI::Option* jsonl;
  CLI::Option* file;
};

Result<ordered_json> render(const ModelFiles& files, const Tokenizer& tokenizer, const std::string& line) {
  WH_ASSIGN(const ordered_json variables, parse_object(line));
  WH_ASSIGN(const MarkedText rendered, render_chat(files, variables));
  return ordered_json{{"text", rendered.text}, {"ids", tokenizer.encode(rendered)}};
}

Result<int> render_lines(const ModelFiles& files, const Tokenizer& tokenizer, const std::string& path) {
  WH_ASSIGN(LineReader reader, LineReader::open(path));
  int exit_code = kExitOk;
  for (std::string line; reader.next(line);) {
    const Result<ordered_json> answer = render(files, tokenizer, line);
    if (!answer.ok()) exit_code = kExitFailed;
    WH_TRY(write_json_line(answer.ok() ? *answer : error_line(answer.error(), reader.number())));
  }
  WH_TRY(reader.status());
  return exit_code;
}

Result<int> run(const Options& options, const EngineConfig& config) {
  WH_ASSIGN(const ResolvedModel source, find_model(config));
  WH_ASSIGN(const ModelFiles files,
            read_model_files(source.path, nullptr,
                             {.generation_config = "none", .chat_template = config.chat_template}));
  WH_ASSIGN(const Tokenizer* tokenizer, require_tokenizer(files));
  const auto path = options.file->as<std::string>();
  if (options.jsonl->count() > 0) return render_lines(files, *tokenizer, path);
  WH_ASSIGN(const std::string text, read_all(path));
  WH_ASSIGN(const ordered_json answer, render(files, *tokenizer, text));
  WH_TRY(write_output(answer["text"].get<std::string>()));
  return kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  std::vector<std::string> knobs = EngineOptions::model_knobs();
  knobs.push_back("chat_template");
  const Options options{.engine = EngineOptions(app, context, knobs),
                        .jsonl = add_switch(app, "--jsonl", "one JSON object a line in and out"),
                        .file = add_value(app, "-f,--file", "FILE", "read this instead of standard input")};
  return [options, &app, &context] {
    return run_with_config(options.engine, app, context,
                           [&](const EngineConfig& config) { return run(options, config); });
  };
}

}  // namespace

Command render_command() {
  return {
      .name = "render", .summary = "a chat as the model's template writes it", .help = kHelp, .setup = setup};
}

}  // namespace whippet
