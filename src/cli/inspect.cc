// whippet inspect: what a model is and needs, without loading it.
#include <algorithm>

#include "api/loaded_model.h"
#include "api/model_info.h"
#include "backend/registry.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/output.h"
#include "engine/memory.h"
#include "model/loader.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(What a model is and what it needs: family, sizes, types of its tensors, tokenizer, chat template, default
sampling, end tokens, licence, memory. Reads headers only.

The engine's flags change the memory that is shown (--max-num-seqs, --max-model-len, --kv-cache-memory, ...).

Examples:
  whippet inspect
  whippet inspect org/name --json
  whippet inspect ./model.gguf --max-num-seqs 4)";

struct Options {
  EngineOptions engine;
  CLI::Option* json;
};

// What the engine would take, or why it would not start. Weights are counted as they are stored.
ordered_json memory_of(const EngineConfig& config, const Checkpoint& checkpoint, ModelSpec spec) {
  const uint64_t stored = stored_bytes(checkpoint);
  const uint64_t weights =
      config.dtype == "float32" ? static_cast<uint64_t>(spec.num_parameters()) * 4 : stored;
  ordered_json memory = {{"weight_bytes", weights}};
  apply_sliding_window(config, spec);
  const DType computed = kv_type_of(compute_type(config.dtype), spec);
  const auto backend = make_backend(
      config.device, {.num_threads = config.threads, .isa = config.isa, .activations = computed});
  if (!backend.ok()) {
    memory["problem"] = backend.error().message;
    return memory;
  }
  const auto read = read_kv_type(config, computed, (*backend)->memory().has_value());
  if (!read.ok()) {
    memory["problem"] = read.error().message;
    return memory;
  }
  const DType kv_type = *read;
  memory["kv_cache_dtype"] = dtype_name(kv_type);
  memory["kv_cache_bytes_per_token"] = spec.kv_bytes_per_token(kv_type);
  MemoryFacts facts = memory_of(**backend, kv_type);
  facts.available -= std::min(facts.available, weights);
  const auto plan = plan_engine(config, spec, facts);
  if (!plan.ok()) {
    memory["problem"] = plan.error().message;
    return memory;
  }
  memory["device"] = (*backend)->description();
  memory["kv_cache_bytes"] = plan->kv_bytes;
  memory["kv_cache_tokens"] = int64_t{plan->num_blocks} * plan->config.block_size;
  memory["max_model_len"] = plan->config.max_model_len;
  memory["max_num_seqs"] = plan->config.max_num_seqs;
  memory["total_bytes"] = weights + plan->kv_bytes;
  memory["notes"] = plan->notes;
  return memory;
}

std::string text_of(const ordered_json& value) {
  if (value.is_null()) return "not known";
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

std::string kinds_text(const ordered_json& kinds) {
  std::string text;
  for (const auto& [name, kind] : kinds.items()) {
    std::string types;
    for (const auto& [type, count] : kind["types"].items())
      types += fmt::format("{}{} x{}", types.empty() ? "" : ", ", type, count.dump());
    text += fmt::format("    {:<44} {:<16} {}\n", name, kind["shape"].dump(), types);
  }
  return text;
}

std::string join_end_tokens(const ordered_json& tokens) {
  std::string text;
  for (const ordered_json& token : tokens)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", token["id"].dump(), text_of(token["text"]));
  return text.empty() ? "none named" : text;
}

std::string sampling_text(const ordered_json& sampling) {
  if (sampling["named"].empty()) return "the checkpoint names none: temperature 1";
  std::string text;
  for (const ordered_json& entry : sampling["named"]) text += (text.empty() ? "" : ", ") + text_of(entry);
  return text;
}

std::string memory_text(const ordered_json& memory) {
  const auto size = [&](const char* key) { return format_bytes(memory.value(key, uint64_t{0})); };
  if (memory.contains("problem"))
    return fmt::format("  memory            weights {}; it would not start here: {}\n", size("weight_bytes"),
                       text_of(memory["problem"]));
  return fmt::format(
      "  memory            {} = weights {} + KV cache {} ({} tokens of {} bytes, {})\n"
      "  serves            up to {} sequences of up to {} tokens on {}\n",
      size("total_bytes"), size("weight_bytes"), size("kv_cache_bytes"), memory["kv_cache_tokens"].dump(),
      memory["kv_cache_bytes_per_token"].dump(), text_of(memory["kv_cache_dtype"]),
      memory["max_num_seqs"].dump(), memory["max_model_len"].dump(), text_of(memory["device"]));
}

std::string describe(const ordered_json& info) {
  const ordered_json& sizes = info["sizes"];
  const ordered_json& weights = info["weights"];
  const ordered_json& tokenizer = info["tokenizer"];
  const auto n = [&](const char* key) { return sizes[key].dump(); };
  std::string text = fmt::format("{}\n", text_of(info["model"]));
  const auto row = [&](const char* name, const std::string& value) {
    text += fmt::format("  {:<17} {}\n", name, value);
  };
  row("path", text_of(info["path"]));
  if (!text_of(info["revision"]).empty()) row("revision", text_of(info["revision"]));
  row("licence", text_of(info["licence"]));
  row("family", fmt::format("{} ({})", text_of(info["family"]), text_of(info["architecture"])));
  row("parameters", fmt::format("{:.1f} M", info["parameters"].get<double>() / 1e6));
  row("shape",
      fmt::format("{} layers, hidden {}, {} heads over {} KV heads of {}, intermediate {}, vocabulary {}{}",
                  n("num_layers"), n("hidden_size"), n("num_q_heads"), n("num_kv_heads"), n("head_dim"),
                  n("intermediate_size"), n("vocab_size"),
                  sizes["tied_embedding"] == true ? ", tied head" : ""));
  row("context",
      fmt::format("{} tokens, rope theta {}, scaling {}, sliding window in {} layers", n("max_position"),
                  n("rope_theta"), text_of(sizes["rope_scaling"]), n("sliding_window_layers")));
  row("tokenizer", tokenizer["kind"].is_null() ? "none: " + text_of(tokenizer["problem"])
                                               : fmt::format("{}, {} tokens", text_of(tokenizer["kind"]),
                                                             tokenizer["vocab_size"].dump()));
  const ordered_json& chat = info["chat_template"];
  row("chat template", chat["file"].is_null() ? text_of(chat["problem"]) : text_of(chat["file"]));
  row("end tokens", join_end_tokens(info["end_tokens"]));
  row("default sampling", sampling_text(info["default_sampling"]));
  text += memory_text(info["memory"]);
  row("weights", fmt::format("{} tensors, {} in {}", weights["tensors"].dump(),
                             format_bytes(weights["bytes"].get<uint64_t>()), text_of(weights["container"])));
  return text + kinds_text(weights.value("kinds", ordered_json::object()));
}

Result<int> run(const Options& options, const EngineConfig& config) {
  WH_ASSIGN(const ResolvedModel source, find_model(config));
  WH_ASSIGN(const Checkpoint checkpoint, open_checkpoint(source.path));
  WH_ASSIGN(const ModelSpec spec, read_spec(checkpoint));
  WH_ASSIGN(const ModelFiles files, read_model_files(source.path, &checkpoint,
                                                     {.generation_config = config.generation_config,
                                                      .chat_template = config.chat_template}));
  ordered_json info = describe_model(source, checkpoint, spec, files);
  info["memory"] = memory_of(config, checkpoint, spec);
  WH_TRY(write_output(options.json->count() > 0 ? json_text(info, 2) + "\n" : describe(info)));
  return kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  const Options options{.engine = EngineOptions(app, context), .json = add_switch(app, "--json", "as JSON")};
  return [options, &app, &context] {
    return run_with_config(options.engine, app, context,
                           [&](const EngineConfig& config) { return run(options, config); });
  };
}

}  // namespace

Command inspect_command() {
  return {.name = "inspect", .summary = "what a model is and what it needs", .help = kHelp, .setup = setup};
}

}  // namespace whippet
