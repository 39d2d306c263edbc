#include "engine/memory.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/math.h"
#include "base/progress.h"
#include "engine/limits.h"

namespace whippet {
namespace {

constexpr int64_t kTokensPerSeq = 2048;  // what a sequence takes of the default cache
constexpr int32_t kMaxSeqs = 8192;
constexpr int64_t kMaxBlocks = int64_t{1} << 27;
// Prompt rows beside the draws whose logits one step may want (prompt_logprobs).
constexpr int32_t kExtraLogits = 32;

Status check_knobs(const EngineConfig& c, const ModelSpec& spec) {
  const auto refuse = [](const char* knob, auto value, const char* allowed) {
    return make_error(Code::kInvalidArgument, "{} is {}, but must be {}", knob, value, allowed);
  };
  constexpr std::array kBlockSizes = {8, 16, 32, 64, 128};
  if (std::ranges::find(kBlockSizes, c.block_size) == kBlockSizes.end())
    return refuse("block_size", c.block_size, "8, 16, 32, 64 or 128");
  if (c.max_model_len < 0 || c.max_model_len == 1)
    return refuse("max_model_len", c.max_model_len, "0 (chosen) or 2 or more");
  if (c.max_num_seqs < 0 || c.max_num_seqs > kMaxSeqs)
    return refuse("max_num_seqs", c.max_num_seqs, "0 (chosen) to 8192");
  if (c.max_num_batched_tokens < 0 || c.max_num_batched_tokens > (1 << 20))
    return refuse("max_num_batched_tokens", c.max_num_batched_tokens, "0 (chosen) to 1048576");
  if (!(c.gpu_memory_utilization >= 0 && c.gpu_memory_utilization <= 1))
    return refuse("gpu_memory_utilization", c.gpu_memory_utilization, "0 (chosen) to 1");
  if (!(c.batch_wait_ms >= 0 && c.batch_wait_ms <= 60000))
    return refuse("batch_wait_ms", c.batch_wait_ms, "0 to 60000");
  if (c.batch_wait_size < 0) return refuse("batch_wait_size", c.batch_wait_size, "0 (max_num_seqs) or more");
  if (c.sliding_window < 0)
    return refuse("sliding_window", c.sliding_window, "0 (as the model says) or more");
  if (c.overlap != "auto" && c.overlap != "on" && c.overlap != "off")
    return refuse("overlap", c.overlap, "auto, on or off");
  if (c.max_num_seqs > 0 && c.max_num_batched_tokens > 0 && c.max_num_batched_tokens < c.max_num_seqs) {
    return make_error(
        Code::kInvalidArgument,
        "max_num_batched_tokens is {}, but max_num_seqs is {}, and each sequence needs a row in a "
        "step: raise the one or lower the other",
        c.max_num_batched_tokens, c.max_num_seqs);
  }
  if (spec.max_position < 2) {
    return make_error(Code::kUnsupported,
                      "the model's config names no longest sequence (max_position_embeddings)");
  }
  const bool stretches = spec.rope.scaling == RopeScaling::kDynamicNtk;
  const auto longest = static_cast<int64_t>(static_cast<double>(spec.max_position) *
                                            (stretches ? std::max(1.0f, spec.rope.factor) : 1.0f));
  if (c.max_model_len > longest) {
    return make_error(Code::kInvalidArgument,
                      "max_model_len is {}, but the model was made for {} tokens at most", c.max_model_len,
                      longest);
  }
  return {};
}

// Everything but the cache and the length.
void fill_defaults(const MemoryFacts& facts, EnginePlan& plan) {
  EngineConfig& c = plan.config;
  if (c.overlap == "auto") c.overlap = facts.gpu ? "on" : "off";
  const bool seqs_chosen = c.max_num_seqs == 0;
  if (seqs_chosen) c.max_num_seqs = facts.gpu ? 256 : 32;
  // On a CPU a step of more rows would hold up running answers for longer than it speeds up prompts.
  if (c.max_num_batched_tokens == 0)
    c.max_num_batched_tokens = std::max(facts.gpu ? 2048 : 256, c.max_num_seqs);
  if (c.max_num_batched_tokens < c.max_num_seqs) {
    plan.notes.push_back(fmt::format("max_num_seqs is lowered from {} to max_num_batched_tokens, {}",
                                     c.max_num_seqs, c.max_num_batched_tokens));
    c.max_num_seqs = c.max_num_batched_tokens;
  }
}

// How many bytes the cache may have, with the words for it.
struct Room {
  uint64_t wanted = 0;   // takes this much,
  uint64_t ceiling = 0;  // or up to this much, where one max_model_len needs it
  std::string formula;
};

Result<Room> find_room(const EngineConfig& c, uint64_t token_bytes, const MemoryFacts& facts) {
  const char* device = facts.gpu ? "the GPU's memory" : "the memory of host and cgroup";
  if (const uint64_t bytes = c.kv_cache_memory.bytes; bytes > 0) {
    if (bytes > facts.available) {
      return make_error(Code::kResourceExhausted, "kv_cache_memory is {}, but only {} of {} are free",
                        format_bytes(bytes), format_bytes(facts.available), device);
    }
    return Room{bytes, bytes, fmt::format("kv_cache_memory {}", format_bytes(bytes))};
  }
  if (c.gpu_memory_utilization > 0) {
    const auto share = static_cast<uint64_t>(c.gpu_memory_utilization * static_cast<double>(facts.total));
    const uint64_t used = facts.total - std::min(facts.total, facts.available);
    if (share <= used) {
      return make_error(
          Code::kResourceExhausted,
          "gpu_memory_utilization {} is {} of {}, but {} are in use already, the weights included: "
          "raise it, or free memory",
          c.gpu_memory_utilization, format_bytes(share), device, format_bytes(used));
    }
    return Room{share - used, share - used,
                fmt::format("gpu_memory_utilization {} x {} - {} in use", c.gpu_memory_utilization,
                            format_bytes(facts.total), format_bytes(used))};
  }
  const uint64_t seqs =
      static_cast<uint64_t>(c.max_num_seqs) * static_cast<uint64_t>(kTokensPerSeq) * token_bytes;
  const uint64_t share = facts.gpu ? facts.available / 10 * 9 : facts.available / 4;
  return Room{std::min(share, seqs), facts.gpu ? share : facts.available / 2,
              fmt::format("min({} of {} free, {} sequences x {} tokens), at least one max_model_len",
                          facts.gpu ? "0.9" : "a quarter", format_bytes(facts.available), c.max_num_seqs,
                          kTokensPerSeq)};
}

// The largest max_model_len whose blocks fit into `num_blocks`.
int32_t longest_that_fits(const CoreLimits& limits, int32_t length, int64_t num_blocks) {
  if (peak_blocks(limits, length) <= num_blocks) return length;
  return static_cast<int32_t>(num_blocks * limits.block_size);
}

Error does_not_fit(int32_t length, int64_t blocks, uint64_t block_bytes, const Room& room, int32_t fits) {
  return make_error(
      Code::kResourceExhausted,
      "max_model_len {} needs {} of KV cache ({} blocks of {} bytes), but there is room for {} ({}): "
      "use max_model_len {} or less, or give more kv_cache_memory",
      length, format_bytes(static_cast<uint64_t>(blocks) * block_bytes), blocks, block_bytes,
      format_bytes(room.ceiling), room.formula, fits);
}

}  // namespace

Result<EnginePlan> plan_engine(const EngineConfig& config, const ModelSpec& spec, const MemoryFacts& facts) {
  WH_TRY(check_knobs(config, spec));
  EnginePlan plan;
  plan.config = config;
  plan.kv_type = facts.kv_type;
  plan.gpu = facts.gpu;
  EngineConfig& c = plan.config;
  fill_defaults(facts, plan);
  if (c.max_model_len == 0) c.max_model_len = spec.max_position;
  const auto hold_whole_prompts = [&] {
    if (!c.enable_chunked_prefill && config.max_num_batched_tokens == 0)
      c.max_num_batched_tokens = c.max_model_len + c.max_num_seqs;
  };
  hold_whole_prompts();

  const auto token_bytes = static_cast<uint64_t>(spec.kv_bytes_per_token(facts.kv_type));
  const uint64_t block_bytes = token_bytes * static_cast<uint64_t>(c.block_size);
  WH_ASSIGN(const Room room, find_room(c, token_bytes, facts));
  const auto ceiling = std::min(static_cast<int64_t>(room.ceiling / block_bytes), kMaxBlocks);
  const CoreLimits limits = core_limits(plan, spec);
  const int32_t fits = longest_that_fits(limits, c.max_model_len, ceiling);
  if (fits < c.max_model_len) {
    if (config.max_model_len > 0 || fits < 2) {
      return does_not_fit(c.max_model_len, peak_blocks(limits, c.max_model_len), block_bytes, room, fits);
    }
    plan.notes.push_back(fmt::format(
        "max_model_len is lowered from the model's {} to {}, which is what fits into {} of KV cache "
        "({}): give more kv_cache_memory for longer sequences",
        c.max_model_len, fits, format_bytes(room.ceiling), room.formula));
    c.max_model_len = fits;
  }
  const int64_t wanted = std::min(static_cast<int64_t>(room.wanted / block_bytes), kMaxBlocks);
  plan.num_blocks = static_cast<int32_t>(std::max<int64_t>(wanted, peak_blocks(limits, c.max_model_len)));
  plan.kv_bytes = static_cast<uint64_t>(plan.num_blocks) * block_bytes;

  hold_whole_prompts();
  if (!c.enable_chunked_prefill && c.max_num_batched_tokens < c.max_model_len + c.max_num_seqs) {
    return make_error(
        Code::kInvalidArgument,
        "max_num_batched_tokens is {}, but without chunked prefill a step must hold max_model_len + "
        "max_num_seqs = {} rows",
        c.max_num_batched_tokens, c.max_model_len + c.max_num_seqs);
  }
  plan.notes.push_back(fmt::format("KV cache: {} = {} tokens in {} blocks, {} bytes a token in {}; {}",
                                   format_bytes(plan.kv_bytes),
                                   static_cast<int64_t>(plan.num_blocks) * c.block_size, plan.num_blocks,
                                   token_bytes, dtype_name(plan.kv_type), room.formula));
  return plan;
}

void apply_sliding_window(const EngineConfig& config, ModelSpec& spec) {
  if (config.sliding_window <= 0) return;
  spec.window_of_layer.resize(static_cast<size_t>(spec.num_layers), 0);
  for (int32_t& window : spec.window_of_layer) {
    window = window == 0 ? config.sliding_window : std::min(window, config.sliding_window);
  }
}

MemoryFacts memory_of(const Backend& backend, DType kv_type) {
  const auto own = backend.memory();
  if (!own) return host_memory(kv_type);
  return {.gpu = true, .total = own->total, .available = own->available, .kv_type = kv_type};
}

DType kv_type_of(ComputeType compute, const ModelSpec& spec) {
  switch (compute) {
    case ComputeType::kF32:
      return DType::kF32;
    case ComputeType::kF16:
      return DType::kF16;
    case ComputeType::kBF16:
      return DType::kBF16;
    case ComputeType::kAuto:
      break;
  }
  if (spec.dtype == "float32") return DType::kF32;
  return spec.dtype == "float16" ? DType::kF16 : DType::kBF16;
}

Result<DType> read_kv_type(const EngineConfig& config, DType computed, bool gpu) {
  const std::string& name = config.kv_cache_dtype;
  DType type = computed;
  if (name == "float32" || name == "fp32") {
    type = DType::kF32;
  } else if (name == "bfloat16" || name == "bf16") {
    type = DType::kBF16;
  } else if (name == "float16" || name == "fp16") {
    type = DType::kF16;
  } else if (name == "int8") {
    type = DType::kI8;
  } else if (name != "auto") {
    return make_error(Code::kInvalidArgument,
                      "kv_cache_dtype is {}, but must be auto, float32, bfloat16, float16 or int8", name);
  }
  if (gpu && type != computed) {
    return make_error(Code::kUnsupported,
                      "{} KV cache is not available on the CUDA backend yet, which computes in {}: use "
                      "kv_cache_dtype auto, or device cpu",
                      dtype_name(type), dtype_name(computed));
  }
  return type;
}

CoreLimits core_limits(const EnginePlan& plan, const ModelSpec& spec) {
  const EngineConfig& c = plan.config;
  CoreLimits limits{.max_model_len = c.max_model_len,
                    .max_num_seqs = c.max_num_seqs,
                    .max_num_batched_tokens = c.max_num_batched_tokens,
                    .max_num_logits = c.max_num_seqs + kExtraLogits,
                    .block_size = c.block_size,
                    .num_blocks = plan.num_blocks,
                    .kv_type = plan.kv_type,
                    .enable_prefix_caching = c.enable_prefix_caching,
                    .enable_chunked_prefill = c.enable_chunked_prefill,
                    .batch_wait_ms = c.batch_wait_ms,
                    .batch_wait_size = c.batch_wait_size,
                    .overlap = c.overlap == "on",
                    .round_batches = plan.gpu,
                    .seed = c.seed};
  const auto& windows = spec.window_of_layer;
  const bool all = !windows.empty() && std::ranges::find(windows, 0) == windows.end();
  if (all) limits.window = *std::ranges::max_element(windows);
  return limits;
}

int32_t peak_blocks(const CoreLimits& limits, int32_t length) {
  const int32_t whole = ceil_div(length, limits.block_size);
  if (limits.window == 0) return whole;
  const int64_t rows = int64_t{limits.max_num_batched_tokens} * (limits.overlap ? 2 : 1);
  const int64_t held = (limits.window + rows) / limits.block_size + 2;
  return static_cast<int32_t>(std::min<int64_t>(whole, held));
}

}  // namespace whippet
