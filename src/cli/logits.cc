// whippet logits: what the model computes, as a safetensors file.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "api/loaded_model.h"
#include "api/logits_model.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/lines.h"
#include "cli/output.h"
#include "model/safetensors.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(The logits of every position, for comparing models and finding faults.

One JSON object a line in, one tensor a line out:
  {"input_ids": [...]}, or {"text": "..."} encoded as it stands
  -> logits_0, logits_1, ... of the --out file, each [tokens, vocab] in fp32; standard output gets one line
     {"tensor": "logits_0", "tokens": N, "vocab": V, "argmax": the likeliest token after the last} for each
--dtype float32 computes in fp32 over the (dequantised) weights. A line that is wrong ends the command.

Examples:
  echo '{"input_ids": [1, 2, 3]}' | whippet logits ./folder --jsonl --out logits.safetensors
  whippet logits org/name --jsonl --dtype float32 --out a.safetensors < lines.jsonl)";

struct Options {
  EngineOptions engine;
  CLI::Option* out;
  CLI::Option* file;
};

Result<std::vector<int32_t>> ids_of(const std::string& line, const std::optional<Tokenizer>& tokenizer) {
  WH_ASSIGN(const ordered_json object, parse_object(line));
  std::vector<int32_t> ids;
  if (object.contains("input_ids")) {
    WH_ASSIGN(ids, read_ids(object, "input_ids"));
  } else if (object.contains("text") && object["text"].is_string() && tokenizer) {
    ids = tokenizer->encode(object["text"].get<std::string>());
  } else {
    return make_error(Code::kInvalidArgument, R"(expected {{"input_ids": [...]}})");
  }
  if (ids.empty()) return make_error(Code::kInvalidArgument, "there are no tokens");
  return ids;
}

Result<std::vector<std::vector<int32_t>>> read_lines(const std::string& path, const EngineConfig& config) {
  WH_ASSIGN(const ResolvedModel source, find_model(config));
  WH_ASSIGN(const ModelFiles files, read_model_files(source.path, nullptr, {.generation_config = "none"}));
  WH_ASSIGN(LineReader reader, LineReader::open(path));
  std::vector<std::vector<int32_t>> lines;
  for (std::string line; reader.next(line);) {
    auto ids = ids_of(line, files.tokenizer);
    if (!ids.ok())
      return make_error(Code::kInvalidArgument, "line {}: {}", reader.number(), ids.error().message);
    lines.push_back(std::move(*ids));
  }
  WH_TRY(reader.status());
  if (lines.empty()) return make_error(Code::kInvalidArgument, "there are no lines");
  return lines;
}

std::string tensor_name(size_t line) { return fmt::format("logits_{}", line); }

std::vector<TensorView> declare(const std::vector<std::vector<int32_t>>& lines, int32_t vocab) {
  std::vector<TensorView> tensors;
  for (size_t i = 0; i < lines.size(); ++i) {
    TensorView tensor;
    tensor.name = tensor_name(i);
    tensor.type = StorageType::kF32;
    tensor.shape = {static_cast<int64_t>(lines[i].size()), vocab};
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<int> run(const Options& options, const EngineConfig& config) {
  WH_ASSIGN(const auto lines, read_lines(options.file->as<std::string>(), config));
  size_t longest = 0;
  for (const auto& line : lines) longest = std::max(longest, line.size());
  WH_ASSIGN(const auto model, LogitsModel::load(config, static_cast<int32_t>(longest)));
  const int32_t vocab = model->vocab_size();
  WH_ASSIGN(SafetensorsWriter writer,
            SafetensorsWriter::create(options.out->as<std::string>(), declare(lines, vocab)));
  for (size_t i = 0; i < lines.size(); ++i) {
    std::vector<float> last;
    const Status status = model->forward(lines[i], [&](std::span<const float> rows) -> Status {
      last.assign(rows.end() - vocab, rows.end());
      return writer.append(std::as_bytes(rows));
    });
    if (!status.ok())
      return make_error(status.error().code, "{}: {}", tensor_name(i), status.error().message);
    WH_TRY(write_json_line({{"tensor", tensor_name(i)},
                            {"tokens", lines[i].size()},
                            {"vocab", vocab},
                            {"argmax", std::max_element(last.begin(), last.end()) - last.begin()}}));
  }
  WH_TRY(writer.commit());
  return kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  EngineOptions engine(app, context);
  add_switch(app, "--jsonl", "one JSON object a line (there is no other form)");
  const Options options{.engine = engine,
                        .out = add_value(app, "--out", "FILE", "the file to write"),
                        .file = add_value(app, "-f,--file", "FILE", "read this instead of standard input")};
  return [options, &app, &context] {
    if (options.out->count() == 0 && !options.engine.print_config())
      return report_usage(context, app, make_error(Code::kInvalidArgument, "--out FILE is missing"));
    return run_with_config(options.engine, app, context,
                           [&](const EngineConfig& config) { return run(options, config); });
  };
}

}  // namespace

Command logits_command() {
  return {
      .name = "logits", .summary = "what the model computes, as safetensors", .help = kHelp, .setup = setup};
}

}  // namespace whippet
