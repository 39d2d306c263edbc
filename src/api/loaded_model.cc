#include "api/loaded_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/config_rules.h"
#include "api/kv_loss.h"
#include "api/model_info.h"
#include "api/quantization.h"
#include "backend/registry.h"
#include "base/log.h"
#include "base/progress.h"
#include "engine/memory.h"
#include "model/loader.h"

namespace whippet {
namespace {

constexpr uint64_t kWorthKeeping = uint64_t{16} << 20;

// Ids that the model can draw; a checkpoint that names others is left with those it has.
std::vector<int32_t> usable_ids(const std::vector<int32_t>& ids, int32_t vocab) {
  std::vector<int32_t> usable;
  for (const int32_t id : ids) {
    if (id < vocab) {
      usable.push_back(id);
    } else {
      log_warning("the checkpoint names end token {}, but its vocabulary has {} tokens: ignored", id, vocab);
    }
  }
  return usable;
}

int32_t vocab_used(const ModelFiles& files, const ModelSpec& spec) {
  if (!files.tokenizer) return spec.vocab_size;
  return std::min(files.tokenizer->vocab_size(), spec.vocab_size);
}

void log_sampling(const GenerationDefaults& defaults) {
  if (defaults.named.empty()) return;
  log_info("default sampling of {}: {}; --generation-config none turns it off", defaults.source,
           fmt::join(defaults.named, ", "));
}

ModelFacts model_facts(const ResolvedModel& source, const Checkpoint& checkpoint, const ModelFiles& files,
                       const ModelSpec& spec, const EngineConfig& config) {
  ModelFacts facts;
  facts.name = source.name;
  facts.fingerprint = fmt::format("{}@{} {} {} {}", source.name, source.revision, stored_bytes(checkpoint),
                                  config.dtype, config.quantization);
  facts.vocab_used = vocab_used(files, spec);
  facts.eos_ids = usable_ids(files.eos_ids, facts.vocab_used);
  return facts;
}

void add_memory(const Model& model, const EnginePlan& plan, const Backend& backend,
                nlohmann::ordered_json& info) {
  const uint64_t weights = model.weights.bytes();
  info["device"] = backend.description();
  info["memory"] = {{"weight_bytes", weights},
                    {"weight_bytes_per_step", model.weights.bytes_per_step()},
                    {"kv_cache_dtype", dtype_name(plan.kv_type)},
                    {"kv_cache_bytes", plan.kv_bytes},
                    {"kv_cache_tokens", int64_t{plan.num_blocks} * plan.config.block_size},
                    {"total_bytes", weights + plan.kv_bytes}};
}

}  // namespace

ComputeType compute_type(const std::string& dtype) {
  if (dtype == "float32") return ComputeType::kF32;
  if (dtype == "bfloat16") return ComputeType::kBF16;
  if (dtype == "float16") return ComputeType::kF16;
  WH_CHECK(dtype == "auto", "{}", dtype);
  return ComputeType::kAuto;
}

Result<ResolvedModel> find_model(const EngineConfig& config) {
  ModelRequest request;
  request.name = config.model;
  request.hub = config.hub;
  request.revision = config.revision;
  request.pull = config.pull ? PullPolicy::kMissing : PullPolicy::kNever;
  return resolve_model(request, hub_config_from_environment());
}

std::filesystem::path packed_folder() { return hub_config_from_environment().whippet_cache / "packed"; }

PackedPlace packed_place(const EngineConfig& config, const ResolvedModel& source) {
  PackedPlace place;
  if (config.packed_cache == "off") return place;
  place.model = source.name;
  place.folder = config.packed_cache.empty() ? packed_folder() : std::filesystem::path(config.packed_cache);
  if (config.packed_cache.empty()) place.least_bytes = kWorthKeeping;
  return place;
}

Status load_served_model(const EngineConfig& config, LoadedModel& loaded) {
  WH_TRY(check_config(config));
  WH_ASSIGN(const ResolvedModel source, find_model(config));
  WH_ASSIGN(const Checkpoint checkpoint, open_checkpoint(source.path));
  WH_ASSIGN(ModelSpec spec, read_spec(checkpoint));
  WH_ASSIGN(const OnLoad on_load, read_quantization(config.quantization, checkpoint));
  WH_ASSIGN(loaded.files, read_model_files(source.path, &checkpoint,
                                           {.generation_config = config.generation_config,
                                            .chat_template = config.chat_template,
                                            .prompt_template = config.prompt_template,
                                            .prompt_template_dir = config.prompt_template_dir}));
  loaded.info = describe_model(source, checkpoint, spec, loaded.files);
  log_info("model {}: {}, {:.0f} M parameters, {}", source.name, spec.architecture,
           static_cast<double>(spec.num_parameters()) / 1e6, format_bytes(stored_bytes(checkpoint)));
  log_sampling(loaded.files.generation);

  const DType computed = kv_type_of(compute_type(config.dtype), spec);
  WH_ASSIGN(loaded.backend, make_backend(config.device, {.num_threads = config.threads,
                                                         .isa = config.isa,
                                                         .activations = computed,
                                                         .deterministic = config.deterministic}));
  WH_ASSIGN(const DType kv_type, read_kv_type(config, computed, loaded.backend->memory().has_value()));
  WH_ASSIGN(Model model, load_model(checkpoint, *loaded.backend, compute_type(config.dtype), on_load,
                                    packed_place(config, source)));
  apply_sliding_window(config, model.spec);
  WH_ASSIGN(const EnginePlan plan, plan_engine(config, model.spec, memory_of(*loaded.backend, kv_type)));
  for (const std::string& note : plan.notes) log_info("{}", note);
  loaded.config = plan.config;
  add_memory(model, plan, *loaded.backend, loaded.info);
  // What the products of the layers are, for whoever compares them with the machine's peak.
  loaded.info["linear_inputs"] = dtype_name(model.weights.layers.front().down.parts.front().input_type);

  loaded.facts = model_facts(source, checkpoint, loaded.files, spec, config);
  const Tokenizer* tokenizer = loaded.files.tokenizer ? &*loaded.files.tokenizer : nullptr;
  if (plan.kv_type == DType::kI8)
    WH_TRY(check_kv_loss(model, *loaded.backend, tokenizer, computed, config.force));
  WH_ASSIGN(loaded.core,
            EngineCore::create(std::move(model), *loaded.backend, tokenizer, plan, loaded.facts));
  loaded.core->start();
  log_info("ready on {}: sequences of up to {} tokens, {} at a time", loaded.backend->description(),
           plan.config.max_model_len, plan.config.max_num_seqs);
  return {};
}

}  // namespace whippet
