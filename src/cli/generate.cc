// whippet generate: continue texts.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/mailbox.h"
#include "cli/answer_json.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/failure.h"
#include "cli/generate_lines.h"
#include "cli/lines.h"
#include "cli/output.h"
#include "cli/sampling_options.h"
#include "cli/structured_options.h"
#include "engine/sampling_check.h"
#include "whippet/whippet.h"

namespace whippet {
namespace {

constexpr const char* kHelp =
    R"(Continue a text, or many.

The prompt is -p TEXT, or all of standard input (a newline at its end is left out). It is taken as it stands,
without a chat template, and control tokens such as <|im_end|> in it are parsed (--no-parse-special: not).
-f FILE has one prompt a line, or with --jsonl one JSON object a line:
  {"prompt": "..." | "messages": [...] | "prompt_ids": [...], "max_tokens": 64, "temperature": 0, ...}
  -> {"text": "...", "token_ids": [...], "finish_reason": "stop", "usage": {...}}
Answers come in the order of the lines, all lines run together, and a line that is wrong gives {"error": ...}
and exit code 1. Further fields of a line: tools, chat_template_kwargs, priority, timeout_s, id (given back),
and what the answer must look like: json_schema, json_object, regex, choice, grammar, response_format.
Sampling is the checkpoint's own default, then the flags, then the fields of a line.

Examples:
  whippet generate -p "Once upon a time" --max-tokens 100
  whippet generate org/name --temperature 0 < prompt.txt
  whippet generate -f prompts.txt > answers.jsonl
  whippet generate -p "The sky is" --choice blue --choice green
  echo '{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 50}' | whippet generate --jsonl)";

struct Options {
  EngineOptions engine;
  SamplingOptions sampling;
  StructuredOptions structured;
  CLI::Option* prompt;
  CLI::Option* file;
  CLI::Option* jsonl;
  CLI::Option* json;
  CLI::Option* parse_special;
  CLI::Option* add_special_tokens;

  bool many() const { return jsonl->count() > 0 || file->count() > 0; }
};

// A flag with a negative form, true where it was not given.
bool on(const CLI::Option* flag) { return flag->count() == 0 || flag->as<bool>(); }

Result<Request> base_request(const Options& options, const Engine& engine) {
  Request request;
  request.params = engine.default_sampling_params();
  WH_TRY(options.sampling.apply(request.params));
  WH_TRY(options.structured.apply(request.params));
  request.parse_special = on(options.parse_special);
  request.add_special_tokens = on(options.add_special_tokens);
  return request;
}

// What can be said before a model is loaded.
Status check_options(const Options& options) {
  SamplingParams params;
  WH_TRY(options.sampling.apply(params));
  WH_TRY(options.structured.apply(params));
  WH_TRY(check_sampling(params, INT32_MAX, true));
  if (options.prompt->count() > 0 && options.many())
    return make_error(Code::kInvalidArgument,
                      "--prompt is one prompt: it does not go with --file or --jsonl");
  const bool plain = !options.many() && options.json->count() == 0;
  if (plain && (params.n > 1 || params.logprobs || params.prompt_logprobs))
    return make_error(Code::kInvalidArgument, "several answers and logprobs need --json or --jsonl");
  if (!options.many() && options.prompt->count() == 0 && ::isatty(STDIN_FILENO) == 1)
    return make_error(Code::kInvalidArgument,
                      "no prompt: give one with -p TEXT, -f FILE or on standard input");
  return {};
}

Result<std::string> read_prompt(const Options& options) {
  if (options.prompt->count() > 0) return options.prompt->as<std::string>();
  WH_ASSIGN(std::string text, read_all(""));
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty()) return make_error(Code::kInvalidArgument, "standard input is empty: there is no prompt");
  return text;
}

// Text as it comes.
Result<int> stream(Engine& engine, Request request) {
  Mailbox<Event> events;
  const uint64_t id = engine.submit(std::move(request), [&](const Event& event) { events.push(event); });
  std::vector<Event> batch;
  std::string last;
  for (bool done = false; !done;) {
    events.take(batch);
    for (const Event& event : batch) {
      const Status written = event.text.empty() ? Status{} : write_output(event.text);
      if (!written.ok()) {
        engine.cancel(id);
        return written.error();
      }
      if (!event.text.empty()) last = event.text;
      if (!event.error.empty()) return make_error(Code::kUnavailable, "{}", event.error);
      done = event.last;
    }
  }
  if (!last.ends_with('\n')) WH_TRY(write_output("\n"));
  return kExitOk;
}

// The first thing that people try.
Status refuse_prompt_as_model(const std::string& model) {
  std::error_code failed;
  if (model.find(' ') == std::string::npos || std::filesystem::exists(model, failed)) return {};
  return make_error(Code::kNotFound, "'{}' is no model: a prompt goes behind -p", model);
}

Result<int> run(const Options& options, EngineConfig config) {
  WH_TRY(refuse_prompt_as_model(config.model));
  if (options.many()) {
    WH_ASSIGN(LineReader reader, LineReader::open(options.file->as<std::string>()));
    LLM llm(config);
    WH_ASSIGN(const Request base, base_request(options, llm.engine()));
    return generate_lines(llm.engine(), reader, base, options.jsonl->count() > 0);
  }
  WH_ASSIGN(std::string prompt, read_prompt(options));
  if (config.max_num_seqs == 0) config.max_num_seqs = 1;  // one prompt: a small cache
  LLM llm(config);
  WH_ASSIGN(Request request, base_request(options, llm.engine()));
  request.prompt = std::move(prompt);
  if (options.json->count() == 0) return stream(llm.engine(), std::move(request));
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  const RequestOutput output = std::move(llm.generate(std::move(requests), false).front());
  if (!output.error.empty()) return make_error(Code::kInvalidArgument, "{}", output.error);
  WH_TRY(write_json_line(answer_to_json(output)));
  return kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  CLI::Option* prompt = add_value(app, "-p,--prompt", "TEXT", "the prompt");
  CLI::Option* file = add_value(app, "-f,--file", "FILE", "one prompt a line, '-': standard input");
  CLI::Option* jsonl = add_switch(app, "--jsonl", "one JSON object a line in and out");
  CLI::Option* json = add_switch(app, "--json", "the answer as JSON, with ids and usage");
  CLI::Option* parse = add_switch(app, "--parse-special,!--no-parse-special",
                                  "control tokens in prompts are parsed; default: on");
  CLI::Option* add = add_switch(app, "--add-special-tokens,!--no-add-special-tokens",
                                "begin with BOS where the tokenizer asks so; default: on");
  const Options options{.engine = EngineOptions(app, context),
                        .sampling = SamplingOptions(app),
                        .structured = StructuredOptions(app),
                        .prompt = prompt,
                        .file = file,
                        .jsonl = jsonl,
                        .json = json,
                        .parse_special = parse,
                        .add_special_tokens = add};
  return [options, &app, &context] {
    const Status checked = options.engine.print_config() ? Status{} : check_options(options);
    if (!checked.ok()) return report_usage(context, app, checked.error());
    return run_with_config(options.engine, app, context, [&](const EngineConfig& config) {
      return with_failures([&] { return run(options, config); });
    });
  };
}

}  // namespace

Command generate_command() {
  return {.name = "generate", .summary = "continue a text, or many", .help = kHelp, .setup = setup};
}

}  // namespace whippet
