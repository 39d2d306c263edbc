// Settings of other engines that people will try: what to do instead of each.
#include <algorithm>

#include "api/config_rules.h"
#include "base/fields.h"

namespace whippet {
namespace {

struct ForeignKnob {
  const char* name;
  const char* advice;
  const char* harmless = nullptr;  // the value that asks for what happens anyway
  bool is_switch = false;
};

constexpr ForeignKnob kForeign[] = {
    {"trust_remote_code",
     "checkpoints never run code here: leave it out; families are built in (see `whippet inspect`)", "false",
     true},
    {"enforce_eager", "nothing is compiled or captured on a CPU: leave it out", "false", true},
    {"swap_space", "preempted requests are recomputed through the prefix cache: leave it out", "0"},
    {"cpu_offload_gb", "choose --device cpu, or a quantized checkpoint that fits", "0"},
    {"tensor_parallel_size", "one device runs the whole model: use 1, and one process per device", "1"},
    {"pipeline_parallel_size", "one device runs the whole model: use 1", "1"},
    {"data_parallel_size", "start one process per device", "1"},
    {"distributed_executor_backend", "one process runs the model: leave it out"},
    {"load_format", "safetensors and GGUF are told apart by themselves: leave it out", "auto"},
    {"tokenizer", "the tokenizer is read from the model's folder: put its files there"},
    {"tokenizer_mode", "there is one tokenizer implementation: leave it out", "auto"},
    {"tokenizer_revision", "the tokenizer comes with the model: use --revision"},
    {"code_revision", "checkpoints never run code here: use --revision"},
    {"skip_tokenizer_init", "send prompt_ids instead of text; the tokenizer is always loaded", "false", true},
    {"download_dir", "set HF_HUB_CACHE or HF_HOME"},
    {"hf_token", "set HF_TOKEN, so that it stays out of the process list"},
    {"kv_cache_memory_bytes", "use --kv-cache-memory"},
    {"num_gpu_blocks_override", "use --kv-cache-memory"},
    {"max_seq_len_to_capture", "nothing is captured on a CPU: leave it out"},
    {"compilation_config", "nothing is compiled at start: leave it out"},
    {"attention_backend", "there is one per device: leave it out"},
    {"async_scheduling", "use --overlap on", nullptr, true},
    {"num_scheduler_steps", "use --overlap on", "1"},
    {"use_v2_block_manager", "there is one: leave it out", "true", true},
    {"scheduling_policy", "priorities always hold, then first come first served: leave it out", "priority"},
    {"disable_sliding_window", "give --max-model-len up to the window", "false", true},
    {"rope_scaling", "change rope_scaling in the model's config.json"},
    {"rope_theta", "change rope_theta in the model's config.json"},
    {"hf_overrides", "change the model's config.json"},
    {"speculative_config", "speculative decoding is not built in: leave it out"},
    {"enable_lora", "adapters are not built in: merge the adapter into the weights", "false", true},
    {"disable_log_stats", "use --log-level warning", nullptr, true},
    {"disable_log_requests", "requests are not logged at the default --log-level: leave it out", nullptr,
     true},
    {"uvicorn_log_level", "use --log-level"},
    {"disable_uvicorn_access_log", "use --no-access-log", nullptr, true},
    {"api_server_count", "use --io-threads"},
    {"root_path", "let the proxy take the prefix away: leave it out", ""},
    {"ssl_ca_certs", "certificates of clients are not asked for: use --api-key"},
    {"allowed_methods", "CORS allows GET and POST: leave it out"},
    {"allowed_headers", "CORS allows what the API reads: leave it out"},
    {"allow_credentials", "keys are sent in a header: leave it out", "false", true},
    {"default_chat_template_kwargs", "use --chat-template-kwargs"},
    {"enable_request_id_headers", "request ids are always sent: leave it out", "true", true},
    {"max_new_tokens", "use --max-tokens"},
    {"ctx_size", "use --max-model-len"},
    {"n_predict", "use --max-tokens"},
};

const ForeignKnob* find_foreign(std::string_view knob) {
  const auto* found = std::find_if(std::begin(kForeign), std::end(kForeign),
                                   [&](const ForeignKnob& k) { return knob == k.name; });
  return found == std::end(kForeign) ? nullptr : found;
}

}  // namespace

std::string foreign_knob_advice(std::string_view knob, std::string_view value) {
  const ForeignKnob* foreign = find_foreign(knob);
  if (foreign == nullptr) return "";
  if (foreign->harmless != nullptr && value == foreign->harmless) return "";
  return foreign->advice;
}

bool is_foreign_knob(std::string_view knob) { return find_foreign(knob) != nullptr; }

bool is_foreign_switch(std::string_view knob) {
  const ForeignKnob* foreign = find_foreign(knob);
  return foreign != nullptr && foreign->is_switch;
}

Error unknown_knob(std::string_view kind, std::string_view spelling, std::string_view value,
                   const std::vector<std::string>& known) {
  const std::string advice = foreign_knob_advice(knob_name(spelling), value);
  if (!advice.empty())
    return make_error(Code::kInvalidArgument, "{} has no meaning here: {}", spelling, advice);
  return make_error(Code::kInvalidArgument, "unknown {} {}{}", kind, spelling, did_you_mean(spelling, known));
}

}  // namespace whippet
