#include "engine/model_testing.h"

#include <cstring>

#include "base/check.h"

namespace whippet {
namespace {

RequestRules rules_of(const TestModel& model, const CoreLimits& limits) {
  RequestRules rules{.limits = limits,
                     .facts = {.name = "test", .fingerprint = "f", .eos_ids = model.model.spec.eos_ids},
                     .seed = 7};
  rules.facts.vocab_used = model.vocab_used;
  rules.frequencies = [&spec = model.model.spec](int32_t length) { return rope_frequencies(spec, length); };
  rules.usual_frequencies = rules.frequencies(1);
  return rules;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace

TestModel load_test_model(const std::filesystem::path& path, ComputeType compute, int32_t num_threads,
                          int32_t window) {
  TestModel out;
  auto backend = make_backend("cpu", {.num_threads = num_threads, .isa = ""});
  WH_CHECK(backend.ok(), "{}", backend.error().message);
  out.backend = std::move(backend).value();
  auto checkpoint = open_checkpoint(path);
  WH_CHECK(checkpoint.ok(), "{}", checkpoint.error().message);
  auto model = load_model(*checkpoint, *out.backend, compute);
  WH_CHECK(model.ok(), "{}", model.error().message);
  out.model = std::move(model).value();
  EngineConfig config;
  config.sliding_window = window;
  apply_sliding_window(config, out.model.spec);
  out.vocab_used = out.model.spec.vocab_size;
  out.kv_type = kv_type_of(compute, out.model.spec);
  return out;
}

CoreLimits test_limits(const TestModel& model, EngineConfig config, int32_t tokens) {
  const DType kv_type = model.kv_type;
  const auto token_bytes = model.model.spec.kv_bytes_per_token(kv_type);
  config.kv_cache_memory.bytes = static_cast<uint64_t>(token_bytes) * static_cast<uint64_t>(tokens);
  const auto plan =
      plan_engine(config, model.model.spec,
                  {.total = uint64_t{1} << 36, .available = uint64_t{1} << 35, .kv_type = kv_type});
  WH_CHECK(plan.ok(), "{}", plan.error().message);
  return core_limits(*plan, model.model.spec);
}

Answers run_together(const TestModel& model, const CoreLimits& limits,
                     const std::vector<CoreRequest>& requests, int32_t stagger, uint64_t* preemptions) {
  const RequestRules rules = rules_of(model, limits);
  Metrics metrics(limits.max_model_len);
  EngineLoop loop(make_runner(model.model, *model.backend, limits, model.vocab_used), limits, rules.facts,
                  model.model.spec.head_dim / 2, metrics);
  Answers answers;
  const auto step = [&] {
    loop.step();
    answers.take(loop.events());
  };
  for (size_t i = 0; i < requests.size(); ++i) {
    auto made = make_active_request(requests[i], i + 1, rules, Clock::now());
    WH_CHECK(made.ok(), "{}", made.error().message);
    loop.add(std::move(made).value());
    for (int32_t k = 0; k < stagger; ++k) step();
  }
  while (loop.has_requests()) step();
  if (preemptions != nullptr) *preemptions = loop.scheduler().num_preemptions();
  WH_CHECK_EQ(loop.pool().num_free(), limits.num_blocks);
  return answers;
}

Answers run_alone(const TestModel& model, const std::vector<CoreRequest>& requests) {
  EngineConfig config;
  config.enable_prefix_caching = false;
  config.max_num_batched_tokens = 1024;
  config.max_num_seqs = 128;  // so that every row of a prompt may want its logits in one step
  const CoreLimits limits = test_limits(model, config, 2 * model.model.spec.max_position + 128);
  const RequestRules rules = rules_of(model, limits);
  Metrics metrics(limits.max_model_len);
  EngineLoop loop(make_runner(model.model, *model.backend, limits, model.vocab_used), limits, rules.facts,
                  model.model.spec.head_dim / 2, metrics);
  Answers answers;
  for (size_t i = 0; i < requests.size(); ++i) {
    auto made = make_active_request(requests[i], i + 1, rules, Clock::now());
    WH_CHECK(made.ok(), "{}", made.error().message);
    loop.add(std::move(made).value());
    while (loop.has_requests()) {
      loop.step();
      answers.take(loop.events());
    }
  }
  return answers;
}

std::string difference(const Answer& a, const Answer& b) {
  if (a.finish != b.finish) {
    return fmt::format("ended by {} and {}", finish_reason_name(a.finish), finish_reason_name(b.finish));
  }
  if (a.tokens != b.tokens)
    return fmt::format("tokens {} and {}", fmt::join(a.tokens, " "), fmt::join(b.tokens, " "));
  if (!same_bits(a.logprobs, b.logprobs)) return "logprobs";
  if (!same_bits(a.prompt_logprobs, b.prompt_logprobs)) return "prompt logprobs";
  return "";
}

}  // namespace whippet
