#include "api/fake_engine.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "api/engine_impl.h"
#include "engine/engine_core.h"
#include "engine/runner.h"

namespace whippet {
namespace {

// The buffers of one step; it is committed before the next is launched.
struct CountingRunner {
  std::function<int32_t(int64_t)> on_step;
  int64_t step = 0;
  size_t num_logits = 0;
  std::vector<int32_t> tokens, ranks, top_ids;
  std::vector<float> logprobs, top_logprobs;

  CountingRunner(const CoreLimits& limits, std::function<int32_t(int64_t)> on_step_given)
      : on_step(std::move(on_step_given)) {
    const auto logits = static_cast<size_t>(limits.max_num_logits);
    tokens.resize(logits);
    ranks.resize(logits, 1);
    logprobs.resize(logits);
    top_ids.resize(logits * kMaxLogprobs, -1);
    top_logprobs.resize(logits * kMaxLogprobs);
  }

  Ticket launch(const Batch& batch) {
    num_logits = static_cast<size_t>(batch.host.num_logits);
    return batch.slot;
  }

  StepOutput wait() {
    std::fill_n(tokens.begin(), num_logits, on_step(++step));
    const std::span<const int32_t> drawn(tokens);
    return {.tokens = drawn.first(num_logits),
            .logprobs = logprobs,
            .ranks = ranks,
            .top_ids = top_ids,
            .top_logprobs = top_logprobs};
  }
};

CoreLimits limits_of(const FakeEngineOptions& options) {
  CoreLimits limits;
  limits.max_model_len = options.max_model_len;
  limits.max_num_seqs = options.max_num_seqs;
  limits.max_num_batched_tokens = options.max_num_batched_tokens;
  limits.max_num_logits = options.max_num_batched_tokens;
  limits.block_size = options.block_size;
  limits.num_blocks = options.max_num_seqs * limits.max_blocks_per_seq();
  limits.seed = 1;
  return limits;
}

}  // namespace

Engine FakeEngine::make(const FakeEngineOptions& options) {
  auto impl = std::make_unique<Engine::Impl>();
  LoadedModel& model = impl->model;
  Result<ModelFiles> files = read_model_files(options.model, nullptr, {});
  if (!files.ok()) throw Failure(code_name(files.error().code), files.error().message);
  model.files = std::move(files).value();
  const Result<const Tokenizer*> tokenizer = require_tokenizer(model.files);
  if (!tokenizer.ok()) throw Failure(code_name(tokenizer.error().code), tokenizer.error().message);

  const CoreLimits limits = limits_of(options);
  model.config.model = options.name;
  model.config.max_model_len = limits.max_model_len;
  model.config.max_num_seqs = limits.max_num_seqs;
  model.config.max_num_batched_tokens = limits.max_num_batched_tokens;
  model.config.block_size = limits.block_size;
  model.info = {{"model", options.name}, {"vocab_size", (*tokenizer)->vocab_size()}};

  // The functions share it; the engine is their only owner.
  auto runner = std::make_shared<CountingRunner>(limits, options.on_step);
  model.facts = {.name = options.name,
                 .fingerprint = "fake",
                 .eos_ids = model.files.eos_ids,
                 .vocab_used = (*tokenizer)->vocab_size()};
  model.core = EngineCore::create({.launch = [runner](const Batch& batch) { return runner->launch(batch); },
                                   .sample = [](Ticket, std::span<const SampleRow>) {},
                                   .wait = [runner](Ticket) { return runner->wait(); }},
                                  limits, *tokenizer, model.facts);
  model.core->start();
  impl->start();
  return Engine(std::move(impl));
}

}  // namespace whippet
