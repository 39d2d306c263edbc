// whippet tokenize: text to token ids and back.
#include "api/loaded_model.h"
#include "api/model_files.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/lines.h"
#include "cli/output.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(Text to token ids and back. A folder with only tokenizer files is enough.

With --jsonl, one JSON object a line in and out:
  {"text": "..."} -> {"ids": [...]}      control tokens such as <|im_end|> are parsed, nothing is added
  {"ids": [...]}  -> {"text": "..."}     control tokens are shown
  A line that is wrong gives {"error": ..., "line": N}, and the exit code is 1.
Without it, all of standard input (or --text) is one text, and its ids are printed with their spellings.

Examples:
  whippet tokenize --text "Hello world"
  echo '{"text": "Hello world"}' | whippet tokenize org/name --jsonl
  whippet tokenize ./folder --jsonl < texts.jsonl > ids.jsonl)";

struct Options {
  EngineOptions engine;
  CLI::Option* jsonl;
  CLI::Option* text;
  CLI::Option* file;
  CLI::Option* no_parse_special;
  CLI::Option* add_special_tokens;
  CLI::Option* skip_special_tokens;

  EncodeOptions encode() const {
    return {.parse_special = no_parse_special->count() == 0,
            .add_special_tokens = add_special_tokens->count() > 0};
  }
};

Result<ordered_json> convert(const Tokenizer& tokenizer, const Options& options, const std::string& line) {
  WH_ASSIGN(const ordered_json object, parse_object(line));
  if (object.contains("text")) {
    if (!object["text"].is_string()) return make_error(Code::kInvalidArgument, "text: expected a text");
    return ordered_json{{"ids", tokenizer.encode(object["text"].get<std::string>(), options.encode())}};
  }
  if (!object.contains("ids"))
    return make_error(Code::kInvalidArgument, R"(expected {{"text": "..."}} or {{"ids": [...]}})");
  WH_ASSIGN(const std::vector<int32_t> ids, read_ids(object, "ids"));
  return ordered_json{{"text", tokenizer.decode(ids, options.skip_special_tokens->count() > 0)}};
}

Result<int> convert_lines(const Tokenizer& tokenizer, const Options& options) {
  WH_ASSIGN(LineReader reader, LineReader::open(options.file->as<std::string>()));
  int exit_code = kExitOk;
  for (std::string line; reader.next(line);) {
    Result<ordered_json> answer = convert(tokenizer, options, line);
    if (!answer.ok()) exit_code = kExitFailed;
    WH_TRY(write_json_line(answer.ok() ? *answer : error_line(answer.error(), reader.number())));
  }
  WH_TRY(reader.status());
  return exit_code;
}

// Ids with what each spells, for people.
Result<int> show(const Tokenizer& tokenizer, const Options& options) {
  std::string text = options.text->as<std::string>();
  if (options.text->count() == 0) {
    WH_ASSIGN(text, read_all(options.file->as<std::string>()));
  }
  std::string out;
  for (const int32_t id : tokenizer.encode(text, options.encode()))
    out += fmt::format("{:>8}  {}\n", id, json_text(std::string(tokenizer.token_bytes(id))));
  WH_TRY(write_output(out));
  return kExitOk;
}

Result<int> run(const Options& options, const EngineConfig& config) {
  WH_ASSIGN(const ResolvedModel source, find_model(config));
  WH_ASSIGN(const ModelFiles files, read_model_files(source.path, nullptr, {.generation_config = "none"}));
  WH_ASSIGN(const Tokenizer* tokenizer, require_tokenizer(files));
  return options.jsonl->count() > 0 ? convert_lines(*tokenizer, options) : show(*tokenizer, options);
}

Run setup(CLI::App& app, const Context& context) {
  const Options options{
      .engine = EngineOptions(app, context, EngineOptions::model_knobs()),
      .jsonl = add_switch(app, "--jsonl", "one JSON object a line in and out"),
      .text = add_value(app, "--text", "TEXT", "this text instead of standard input"),
      .file = add_value(app, "-f,--file", "FILE", "read this instead of standard input"),
      .no_parse_special = add_switch(app, "--no-parse-special", "spelled control tokens stay text"),
      .add_special_tokens =
          add_switch(app, "--add-special-tokens", "add BOS and EOS as the tokenizer asks for"),
      .skip_special_tokens =
          add_switch(app, "--skip-special-tokens", "leave control tokens out of decoded text")};
  return [options, &app, &context] {
    if (options.jsonl->count() > 0 && options.text->count() > 0)
      return report_usage(
          context, app,
          make_error(Code::kInvalidArgument, "--text is one text: it does not go with --jsonl"));
    return run_with_config(options.engine, app, context,
                           [&](const EngineConfig& config) { return run(options, config); });
  };
}

}  // namespace

Command tokenize_command() {
  return {.name = "tokenize", .summary = "text to token ids and back", .help = kHelp, .setup = setup};
}

}  // namespace whippet
