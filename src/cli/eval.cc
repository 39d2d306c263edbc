// whippet eval: how good a model is, in itself and beside the one that it was made from.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "api/loaded_model.h"
#include "api/quality.h"
#include "base/fields.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/lines.h"
#include "cli/output.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(How well a model predicts a text, how far quantization has moved it, how many questions it answers right.

--text FILE is cut into windows of --window tokens; in each, every token but the first is predicted from
those before it. The perplexity is e to the mean loss. With --against MODEL, or with --quantization int8 or
int4, or with --kv-cache-dtype (then against the same model without them), also the mean Kullback-Leibler
divergence from the other model in nats and the share of positions where both hold the same token likeliest.
--choices FILE has a question a line: {"question": TEXT, "choices": [TEXT, ...], "answer": which, from 0}. The
choice with the highest mean log-probability a token after the question is the model's answer.

Examples:
  whippet eval smollm2 --text novel.txt --quantization int4
  whippet eval ./quantized --against ./original --text novel.txt --limit 4096 --json
  whippet eval smollm2 --choices questions.jsonl)";

constexpr int64_t kMostWindow = 1 << 16;

struct Options {
  EngineOptions engine;
  CLI::Option* text;
  CLI::Option* choices;
  CLI::Option* against;
  CLI::Option* window;
  CLI::Option* limit;
  CLI::Option* json;
};

// What is to be measured, as tokens.
struct Material {
  std::vector<std::vector<int32_t>> windows;
  std::vector<Choices> questions;
  size_t longest = 1;
};

Status add_text(const std::string& path, const Tokenizer& tokenizer, size_t window, size_t limit,
                Material& material) {
  WH_ASSIGN(const std::string text, read_all(path));
  std::vector<int32_t> ids = tokenizer.encode(text, {.parse_special = false});
  ids.resize(std::min(ids.size(), limit));
  if (ids.size() < 2) {
    return make_error(Code::kInvalidArgument, "{} has {} tokens, and it takes 2 to predict one", path,
                      ids.size());
  }
  std::vector<int32_t> opening;  // of every window, where the model expects it
  if (tokenizer.adds_bos() && tokenizer.bos_id()) opening.push_back(*tokenizer.bos_id());
  const size_t step = window - opening.size();
  for (size_t begin = 0; begin + 1 < ids.size() + opening.size(); begin += step) {
    std::vector<int32_t> one = opening;
    const size_t end = std::min(ids.size(), begin + step);
    one.insert(one.end(), ids.begin() + static_cast<ptrdiff_t>(begin),
               ids.begin() + static_cast<ptrdiff_t>(end));
    material.longest = std::max(material.longest, one.size());
    material.windows.push_back(std::move(one));
  }
  return {};
}

Result<Choices> read_question(const std::string& line, const Tokenizer& tokenizer) {
  WH_ASSIGN(const ordered_json object, parse_object(line));
  const auto wrong = [] {
    return make_error(Code::kInvalidArgument,
                      R"(expected {{"question": TEXT, "choices": [TEXT, ...], "answer": a number from 0}})");
  };
  for (const char* key : {"question", "choices", "answer"}) {
    if (!object.contains(key)) return wrong();
  }
  const ordered_json& choices = object["choices"];
  const ordered_json& answer = object["answer"];
  if (!object["question"].is_string() || !choices.is_array() || choices.size() < 2 ||
      !answer.is_number_unsigned() || answer.get<size_t>() >= choices.size()) {
    return wrong();
  }
  Choices question;
  question.prompt = tokenizer.encode(object["question"].get<std::string>(), {.add_special_tokens = true});
  question.right = answer.get<size_t>();
  for (const ordered_json& choice : choices) {
    if (!choice.is_string()) return wrong();
    question.answers.push_back(tokenizer.encode(choice.get<std::string>(), {.parse_special = false}));
    if (question.answers.back().empty() || question.prompt.empty()) return wrong();
  }
  return question;
}

Status add_questions(const std::string& path, const Tokenizer& tokenizer, Material& material) {
  WH_ASSIGN(LineReader reader, LineReader::open(path));
  for (std::string line; reader.next(line);) {
    auto question = read_question(line, tokenizer);
    if (!question.ok())
      return make_error(Code::kInvalidArgument, "{}, line {}: {}", path, reader.number(),
                        question.error().message);
    for (const auto& answer : question->answers)
      material.longest = std::max(material.longest, question->prompt.size() + answer.size());
    material.questions.push_back(std::move(*question));
  }
  WH_TRY(reader.status());
  if (material.questions.empty()) return make_error(Code::kInvalidArgument, "{} has no questions", path);
  return {};
}

Result<Material> read_material(const Options& options, const EngineConfig& config) {
  WH_ASSIGN(const ResolvedModel source, find_model(config));
  WH_ASSIGN(const ModelFiles files, read_model_files(source.path, nullptr, {.generation_config = "none"}));
  if (!files.tokenizer) return make_error(Code::kNotFound, "{}", files.tokenizer_problem);
  int64_t window = 512, limit = INT32_MAX;
  if (options.window->count() > 0) {
    WH_ASSIGN(window, parse_integer(options.window->as<std::string>(), 2, kMostWindow));
  }
  if (options.limit->count() > 0) {
    WH_ASSIGN(limit, parse_integer(options.limit->as<std::string>(), 2, INT32_MAX));
  }
  Material material;
  if (options.text->count() > 0) {
    WH_TRY(add_text(options.text->as<std::string>(), *files.tokenizer, static_cast<size_t>(window),
                    static_cast<size_t>(limit), material));
  }
  if (options.choices->count() > 0) {
    WH_TRY(add_questions(options.choices->as<std::string>(), *files.tokenizer, material));
  }
  return material;
}

// The model that it is measured against; none where nobody asked.
Result<std::unique_ptr<LogitsModel>> load_reference(const Options& options, EngineConfig config,
                                                    int32_t max_len) {
  const bool rounded = config.quantization == "int8" || config.quantization == "int4";
  const bool cache_chosen = config.kv_cache_dtype != "auto";
  if (options.against->count() == 0 && !rounded && !cache_chosen) return std::unique_ptr<LogitsModel>();
  config.quantization.clear();
  config.kv_cache_dtype = "auto";
  if (options.against->count() > 0) config.model = options.against->as<std::string>();
  return LogitsModel::load(config, max_len);
}

ordered_json text_report(const Quality& quality, bool compared) {
  ordered_json report = {{"tokens", quality.tokens}, {"perplexity", quality.perplexity()}};
  if (!compared) return report;
  report["reference_perplexity"] = quality.reference_perplexity();
  report["kl_divergence"] = quality.mean_divergence();
  report["top1_agreement"] = quality.agreement();
  return report;
}

Status print(const ordered_json& report, bool json) {
  if (json) return write_json_line(report);
  std::string table;
  for (const auto& [name, value] : report.items()) {
    const std::string text = value.is_string()         ? value.get<std::string>()
                             : value.is_number_float() ? fmt::format("{:.6g}", value.get<double>())
                                                       : value.dump();
    table += fmt::format("{:<22} {}\n", name, text);
  }
  return write_output(table);
}

Result<int> run(const Options& options, const EngineConfig& config) {
  WH_ASSIGN(const Material material, read_material(options, config));
  const auto longest = static_cast<int32_t>(material.longest);
  WH_ASSIGN(const auto model, LogitsModel::load(config, longest));
  WH_ASSIGN(const auto reference, load_reference(options, config, longest));
  ordered_json report = {{"model", config.model},
                         {"quantization", config.quantization},
                         {"kv_cache_dtype", config.kv_cache_dtype},
                         {"weight_bytes", model->weight_bytes()}};
  if (reference) report["reference_weight_bytes"] = reference->weight_bytes();
  Progress progress("measuring", material.windows.size() + material.questions.size(), Progress::Unit::kCount);
  if (!material.windows.empty()) {
    Quality quality;
    for (const auto& window : material.windows) {
      WH_TRY(add_sequence(quality, *model, reference.get(), window));
      progress.add(1);
    }
    report.update(text_report(quality, reference != nullptr));
  }
  if (!material.questions.empty()) {
    size_t right = 0;
    for (const Choices& question : material.questions) {
      WH_ASSIGN(const size_t answer, likeliest_answer(*model, question));
      right += answer == question.right ? 1 : 0;
      progress.add(1);
    }
    report["questions"] = material.questions.size();
    report["accuracy"] = static_cast<double>(right) / static_cast<double>(material.questions.size());
  }
  WH_TRY(print(report, options.json->count() > 0));
  return kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  EngineOptions engine(app, context);
  const Options options{
      .engine = engine,
      .text = add_value(app, "--text", "FILE", "a text to predict; - for standard input"),
      .choices =
          add_value(app, "--choices", "FILE", "questions with several answers, one JSON object a line"),
      .against = add_value(app, "--against", "MODEL", "measure the distance from this model too"),
      .window = add_value(app, "--window", "TOKENS", "tokens that are predicted together (default 512)"),
      .limit = add_value(app, "--limit", "TOKENS", "stop after so many tokens of the text"),
      .json = add_switch(app, "--json", "one JSON object instead of a table")};
  return [options, &app, &context] {
    if (options.text->count() + options.choices->count() == 0 && !options.engine.print_config()) {
      return report_usage(context, app,
                          make_error(Code::kInvalidArgument, "--text FILE or --choices FILE is missing"));
    }
    return run_with_config(options.engine, app, context,
                           [&](const EngineConfig& config) { return run(options, config); });
  };
}

}  // namespace

Command eval_command() {
  return {.name = "eval",
          .summary = "perplexity, distance from another model, questions answered right",
          .help = kHelp,
          .setup = setup};
}

}  // namespace whippet
