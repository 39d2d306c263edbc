#include "cli/bench_engine.h"

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/mailbox.h"

namespace whippet {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

// The sizes that the figures need.
ModelSpec spec_of(const ordered_json& sizes) {
  ModelSpec spec;
  spec.vocab_size = sizes["vocab_size"].get<int32_t>();
  spec.hidden_size = sizes["hidden_size"].get<int32_t>();
  spec.num_layers = sizes["num_layers"].get<int32_t>();
  spec.num_q_heads = sizes["num_q_heads"].get<int32_t>();
  spec.num_kv_heads = sizes["num_kv_heads"].get<int32_t>();
  spec.head_dim = sizes["head_dim"].get<int32_t>();
  spec.intermediate_size = sizes["intermediate_size"].get<int32_t>();
  spec.max_position = sizes["max_position"].get<int32_t>();
  return spec;
}

DType dtype_of(const std::string& name) {
  for (const DType type : {DType::kI8, DType::kBF16})
    if (name == dtype_name(type)) return type;
  return DType::kF32;
}

}  // namespace

Result<cpu::MachineSpeed> measure_machine_of(const EngineConfig& config) {
  if (config.device == "cuda") return cpu::MachineSpeed();
  return cpu::measure_machine(config.threads, config.isa);
}

BenchSubject subject_of(const Engine& engine, cpu::MachineSpeed& machine) {
  const auto info = ordered_json::parse(engine.model_info_json());
  const auto device = info["device"].get<std::string>();
  if (!device.starts_with("cpu")) machine = {};
  return {.model = info["model"].get<std::string>(),
          .device = device,
          .dtype = engine.config().dtype,
          .quantization = engine.config().quantization,
          .spec = spec_of(info["sizes"]),
          .weight_bytes = info["memory"]["weight_bytes_per_step"].get<double>(),
          .peak_gops = peak_of(dtype_of(info["linear_inputs"].get<std::string>()), machine)};
}

Request random_request(int32_t prompt_len, int32_t output_len, int32_t vocab, std::mt19937_64& random) {
  std::uniform_int_distribution<int32_t> id(0, vocab - 1);
  Request request;
  request.prompt_token_ids.reserve(static_cast<size_t>(prompt_len));
  for (int32_t i = 0; i < prompt_len; ++i) request.prompt_token_ids.push_back(id(random));
  request.params.temperature = 0;
  request.params.max_tokens = output_len;
  request.params.ignore_eos = true;
  return request;
}

Status check_length(const Engine& engine, const std::string& asked, int64_t prompt_len, int64_t output_len) {
  const int64_t needed = prompt_len + output_len;
  const int32_t limit = engine.max_model_len();
  if (needed <= limit) return {};
  const auto info = ordered_json::parse(engine.model_info_json());
  const auto context = info["sizes"]["max_position"].get<int64_t>();
  const std::string advice =
      context < needed
          ? fmt::format("the model's context has {}: ask for shorter ones, or take another model", context)
          : fmt::format(
                "the model's context has {}: raise --max-model-len, or --kv-cache-memory where that is "
                "what limits it",
                context);
  return make_error(
      Code::kInvalidArgument,
      "{}: a prompt of {} tokens and an answer of {} make {}, but sequences have up to {} tokens here; {}",
      asked, prompt_len, output_len, needed, limit, advice);
}

Status answer_all(Engine& engine, std::vector<Request> requests,
                  const std::function<void(const Arrival&)>& take) {
  // Shared with the callbacks of requests that still run where this function ends early.
  const auto mailbox = std::make_shared<Mailbox<Arrival>>();
  const auto start = Clock::now();
  for (size_t i = 0; i < requests.size(); ++i) {
    engine.submit(std::move(requests[i]), [mailbox, start, i](const Event& event) {
      const double now = std::chrono::duration<double>(Clock::now() - start).count();
      mailbox->push({i, event.token_ids.size(), now, event.last, event.usage, event.timing, event.error});
    });
  }
  std::vector<Arrival> batch;
  for (size_t running = requests.size(); running > 0;) {
    mailbox->take(batch);
    for (const Arrival& arrival : batch) {
      if (!arrival.error.empty()) return make_error(Code::kUnavailable, "{}", arrival.error);
      running -= arrival.last ? 1 : 0;
      take(arrival);
    }
  }
  return {};
}

}  // namespace whippet
