// whippet quantize: a checkpoint in codes, made from a dense one.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "api/loaded_model.h"
#include "api/quality.h"
#include "base/fields.h"
#include "base/progress.h"
#include "cli/calibration_text.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/output.h"
#include "quantize/quantizer.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(Make a model's linear layers 4 or 8 bits, in a folder in GPTQ's layout that other engines read too.

--method gptq needs --calibration FILE: a text, or a .jsonl file of {"text": ...} or {"input_ids": [...]}. The
model reads it, and rounding is chosen so that the layers' outputs on it change least. Take 60 KB or more of
what the model will be used for, in its languages. --method rtn rounds to nearest and needs no text.
Only unquantized safetensors are taken. Norms, biases, embedding and head stay as they are; --quantization
int8 at load time makes embedding and head int8 where they are dense.
It ends with each layer's error: what quantization changes in its outputs on the calibration text, squared and
relative to them, beside that of rounding to nearest (with rtn: the error of the weights), and with perplexity
and distance on sequences of the text that were not calibrated with. An interrupted command goes on where it
stopped when it is given again; what it has finished lies in DIR.partial.

Examples:
  whippet quantize ./model --calibration text.txt --out ./model-int4
  whippet quantize org/name --calibration lines.jsonl --bits 4 --group-size 64 --desc-act --out ./out
  whippet quantize ./model --method rtn --bits 8 --out ./model-int8
  whippet eval ./model-int4 --against ./model --text other.txt)";

struct Options {
  EngineOptions engine;
  CLI::Option* method;
  CLI::Option* bits;
  CLI::Option* group_size;
  CLI::Option* desc_act;
  CLI::Option* no_sym;
  CLI::Option* damp_percent;
  CLI::Option* calibration;
  CLI::Option* samples;
  CLI::Option* sequence_length;
  CLI::Option* out;
  CLI::Option* json;
};

Result<int64_t> integer_of(const CLI::Option* option, int64_t otherwise, int64_t min, int64_t max) {
  if (option->count() == 0) return otherwise;
  const Result<int64_t> value = parse_integer(option->as<std::string>(), min, max);
  if (value.ok()) return value;
  return make_error(Code::kInvalidArgument, "{}: {}", option->get_name(), value.error().message);
}

Result<CodeGrid> read_grid(const Options& options) {
  CodeGrid grid;
  WH_ASSIGN(const int64_t bits, integer_of(options.bits, 4, 2, 8));
  WH_ASSIGN(const int64_t group, integer_of(options.group_size, 128, -1, 1024));
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8)
    return make_error(Code::kInvalidArgument, "--bits: {} is not one of 2, 3, 4, 8", bits);
  static constexpr std::array kGroups = {-1, 16, 32, 64, 128, 256, 512, 1024};
  if (std::find(kGroups.begin(), kGroups.end(), group) == kGroups.end())
    return make_error(Code::kInvalidArgument, "--group-size: {} is not one of {}", group,
                      fmt::join(kGroups, ", "));
  grid.bits = static_cast<int32_t>(bits);
  grid.group = group < 0 ? 0 : static_cast<int32_t>(group);
  grid.symmetric = options.no_sym->count() == 0;
  return grid;
}

// All but the sequences. Wrong flags are found here, before anything is read.
Result<QuantizeOptions> read_flags(const Options& options) {
  QuantizeOptions result;
  const std::string method = options.method->count() > 0 ? options.method->as<std::string>() : "gptq";
  if (method != "gptq" && method != "rtn")
    return make_error(Code::kInvalidArgument, "--method: '{}' is not one of gptq, rtn", method);
  result.gptq = method == "gptq";
  WH_ASSIGN(result.grid, read_grid(options));
  result.act_order = options.desc_act->count() > 0;
  if (options.damp_percent->count() > 0) {
    const Result<double> damping = parse_number(options.damp_percent->as<std::string>());
    if (!damping.ok() || !(*damping >= 0 && *damping <= 1))
      return make_error(Code::kInvalidArgument, "--damp-percent: expected a number from 0 to 1, found '{}'",
                        options.damp_percent->as<std::string>());
    result.damping = *damping;
  }
  if (result.gptq && options.calibration->count() == 0)
    return make_error(
        Code::kInvalidArgument,
        "--calibration FILE is missing: a text of what the model will be used for, 60 KB or more "
        "(--method rtn does without, and loses more)");
  for (const CLI::Option* option : {options.calibration, options.desc_act, options.damp_percent,
                                    options.samples, options.sequence_length}) {
    if (!result.gptq && option->count() > 0)
      return make_error(Code::kInvalidArgument, "{} says nothing to --method rtn", option->get_name());
  }
  if (options.out->count() == 0)
    return make_error(Code::kInvalidArgument, "--out DIR is missing: the folder to write");
  result.out = options.out->as<std::string>();
  return result;
}

Result<CalibrationText> read_text(const Options& options, const std::filesystem::path& model) {
  CalibrationSize size;
  WH_ASSIGN(const int64_t samples, integer_of(options.samples, 64, 1, 4096));
  WH_ASSIGN(const int64_t length, integer_of(options.sequence_length, 256, 8, 8192));
  size.samples = static_cast<size_t>(samples);
  size.length = static_cast<size_t>(length);
  WH_ASSIGN(const ModelFiles files, read_model_files(model, nullptr, {.generation_config = "none"}));
  return read_calibration(options.calibration->as<std::string>(),
                          files.tokenizer ? &*files.tokenizer : nullptr, files.tokenizer_problem, size);
}

// How far the new model is from the old, on text that it was not calibrated with.
Result<ordered_json> measure(const EngineConfig& config, const std::string& out,
                             const std::vector<std::vector<int32_t>>& sequences) {
  size_t longest = 1;
  for (const auto& ids : sequences) longest = std::max(longest, ids.size());
  EngineConfig written = config;
  written.model = out;
  WH_ASSIGN(const auto model, LogitsModel::load(written, static_cast<int32_t>(longest)));
  WH_ASSIGN(const auto source, LogitsModel::load(config, static_cast<int32_t>(longest)));
  Progress progress("measuring", sequences.size(), Progress::Unit::kCount);
  Quality quality;
  for (const auto& ids : sequences) {
    WH_TRY(add_sequence(quality, *model, source.get(), ids));
    progress.add(1);
  }
  return ordered_json{{"tokens", quality.tokens},
                      {"perplexity", quality.perplexity()},
                      {"reference_perplexity", quality.reference_perplexity()},
                      {"kl_divergence", quality.mean_divergence()},
                      {"top1_agreement", quality.agreement()},
                      {"weight_bytes", model->weight_bytes()},
                      {"reference_weight_bytes", source->weight_bytes()}};
}

ordered_json report_of(const std::vector<LinearError>& errors, const std::string& out) {
  ordered_json layers = ordered_json::array();
  double error = 0, rounding = 0;
  for (const LinearError& one : errors) {
    layers.push_back({{"name", one.name}, {"error", one.error}, {"rounding_error", one.rounding_error}});
    error += one.error / static_cast<double>(errors.size());
    rounding += one.rounding_error / static_cast<double>(errors.size());
  }
  return {{"out", out}, {"mean_error", error}, {"mean_rounding_error", rounding}, {"layers", layers}};
}

std::string table_of(const ordered_json& report) {
  std::string table = fmt::format("{:<44} {:>12} {:>12}\n", "layer", "error", "rounding");
  const auto row = [&](const std::string& name, const ordered_json& error, const ordered_json& rounding) {
    table += fmt::format("{:<44} {:>12.3e} {:>12.3e}\n", name, error.get<double>(), rounding.get<double>());
  };
  for (const ordered_json& layer : report["layers"])
    row(layer["name"].get<std::string>(), layer["error"], layer["rounding_error"]);
  row("mean", report["mean_error"], report["mean_rounding_error"]);
  if (!report.contains("quality")) return table;
  table += "\n";
  for (const auto& [name, value] : report["quality"].items())
    table += fmt::format("{:<44} {:>12}\n", name,
                         value.is_number_float() ? fmt::format("{:.6g}", value.get<double>()) : value.dump());
  return table;
}

Result<int> run(const Options& options, QuantizeOptions how, const EngineConfig& config) {
  WH_ASSIGN(const ResolvedModel source, find_model(config));
  WH_ASSIGN(Checkpoint checkpoint, open_checkpoint(source.path));
  CalibrationText text;
  if (how.gptq) {
    WH_ASSIGN(text, read_text(options, source.path));
    how.sequences = std::move(text.sequences);
  }
  how.num_threads = config.threads;
  WH_ASSIGN(const auto errors, quantize_model(std::move(checkpoint), how));
  ordered_json report = report_of(errors, how.out.string());
  if (!text.held_out.empty()) {
    WH_ASSIGN(report["quality"], measure(config, std::filesystem::absolute(how.out).string(), text.held_out));
  }
  const bool json = options.json->count() > 0;
  WH_TRY(json ? write_json_line(report) : write_output(table_of(report)));
  if (!json && text.held_out.empty()) {
    WH_TRY(write_output(fmt::format("\nMeasure it: whippet eval {} --against {} --text FILE\n",
                                    how.out.string(), config.model)));
  }
  return kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  EngineOptions engine(app, context, {"model", "hub", "revision", "pull", "threads"});
  const Options options{
      .engine = engine,
      .method = add_value(app, "--method", "NAME", "gptq (default) or rtn: round to nearest"),
      .bits = add_value(app, "--bits", "N", "4 (default) or 8; 2 and 3 lose much"),
      .group_size = add_value(app, "--group-size", "N",
                              "inputs that share a scale: 32, 64, 128 (default); -1: all of a row"),
      .desc_act =
          add_switch(app, "--desc-act", "inputs that matter most first: loses less, some engines slow down"),
      .no_sym = add_switch(app, "--no-sym", "zero points of their own: loses less, some engines refuse it"),
      .damp_percent =
          add_value(app, "--damp-percent", "X", "share of the mean that steadies GPTQ (default 0.01)"),
      .calibration =
          add_value(app, "--calibration", "FILE", "text, or .jsonl with \"text\" or \"input_ids\""),
      .samples = add_value(app, "--samples", "N", "sequences to calibrate with (default 64)"),
      .sequence_length = add_value(app, "--sequence-length", "N", "tokens of each (default 256)"),
      .out = add_value(app, "--out", "DIR", "the folder to write; must not exist or be empty"),
      .json = add_switch(app, "--json", "one JSON object instead of a table")};
  return [options, &app, &context] {
    if (options.engine.print_config())
      return run_with_config(options.engine, app, context,
                             [](const EngineConfig&) { return Result<int>(kExitOk); });
    Result<QuantizeOptions> how = read_flags(options);
    if (!how.ok()) return report_usage(context, app, how.error());
    return run_with_config(options.engine, app, context,
                           [&](const EngineConfig& config) { return run(options, *how, config); });
  };
}

}  // namespace

Command quantize_command() {
  return {.name = "quantize",
          .summary = "make a model 4 or 8 bits, for every engine that reads GPTQ",
          .help = kHelp,
          .setup = setup};
}

}  // namespace whippet
