#include "engine/runner.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/kv_cache.h"
#include "model/decoder.h"

namespace whippet {
namespace {

// What a step of one ticket draws: on the device, and copied to the host.
struct Draws {
  Buffer tokens, logprobs, ranks, top_ids, top_logprobs;
  std::vector<int32_t> host_tokens, host_ranks, host_top_ids;
  std::vector<float> host_logprobs, host_top_logprobs;
  int32_t count = 0;
  bool has_logprobs = false;
};

class ModelRunner {
 public:
  ModelRunner(const Model& model, Backend& backend, const CoreLimits& limits, int32_t vocab_used)
      : backend_(backend),
        vocab_used_(vocab_used),
        cache_(model.spec, limits, backend),
        decoder_(model.spec, model.weights, backend,
                 {.max_tokens = limits.max_num_batched_tokens, .max_logits = limits.max_num_logits}) {
    const size_t words = BatchBuilder::max_words(limits, model.spec.head_dim / 2);
    const auto rows = static_cast<size_t>(limits.max_num_logits);
    for (Buffer& batch : batches_) batch = backend.allocate(words * sizeof(int32_t));
    for (Draws& draws : draws_) {
      for (Buffer* buffer : {&draws.tokens, &draws.logprobs, &draws.ranks})
        *buffer = backend.allocate(rows * 4);
      for (Buffer* buffer : {&draws.top_ids, &draws.top_logprobs})
        *buffer = backend.allocate(rows * kMaxLogprobs * 4);
      draws.host_tokens.resize(rows);
      draws.host_ranks.resize(rows);
      draws.host_logprobs.resize(rows);
      draws.host_top_ids.resize(rows * kMaxLogprobs);
      draws.host_top_logprobs.resize(rows * kMaxLogprobs);
    }
    sources_.resize(static_cast<size_t>(limits.max_num_batched_tokens));
  }

  Ticket launch(const Batch& batch) {
    const Ticket ticket = batch.slot;
    int32_t* words = batches_[ticket].as<int32_t>();
    backend_.copy_to_device(words, batch.words.data(), batch.words.size_bytes());
    const BatchView view = batch.at(words);
    if (batch.has_sources) fill_inputs(batch, const_cast<int32_t*>(view.token_ids), draws_[1 - ticket]);
    logits_ = decoder_.forward(view, cache_.layers());
    draws_[ticket].count = batch.host.num_logits;
    return ticket;
  }

  void sample(Ticket ticket, std::span<const SampleRow> rows) {
    Draws& draws = draws_[ticket];
    WH_CHECK_EQ(static_cast<int32_t>(rows.size()), draws.count);
    draws.has_logprobs = false;
    for (const SampleRow& row : rows) draws.has_logprobs |= row.num_logprobs >= 0;
    if (rows.empty()) return;
    SampleArgs args{
        .logits = logits_, .rows = rows.data(), .vocab_used = vocab_used_, .max_logprobs = kMaxLogprobs};
    args.tokens = draws.tokens.as<int32_t>();
    if (draws.has_logprobs) {
      args.logprobs = draws.logprobs.as<float>();
      args.ranks = draws.ranks.as<int32_t>();
      args.top_ids = draws.top_ids.as<int32_t>();
      args.top_logprobs = draws.top_logprobs.as<float>();
    }
    backend_.sample(args);
  }

  StepOutput wait(Ticket ticket) {
    Draws& draws = draws_[ticket];
    const auto n = static_cast<size_t>(draws.count);
    backend_.copy_to_host(draws.host_tokens.data(), draws.tokens.as<void>(), n * 4);
    if (draws.has_logprobs) {
      backend_.copy_to_host(draws.host_logprobs.data(), draws.logprobs.as<void>(), n * 4);
      backend_.copy_to_host(draws.host_ranks.data(), draws.ranks.as<void>(), n * 4);
      backend_.copy_to_host(draws.host_top_ids.data(), draws.top_ids.as<void>(), n * kMaxLogprobs * 4);
      backend_.copy_to_host(draws.host_top_logprobs.data(), draws.top_logprobs.as<void>(),
                            n * kMaxLogprobs * 4);
    }
    return {.tokens = std::span(draws.host_tokens).first(n),
            .logprobs = std::span(draws.host_logprobs).first(n),
            .ranks = std::span(draws.host_ranks).first(n),
            .top_ids = std::span(draws.host_top_ids).first(n * kMaxLogprobs),
            .top_logprobs = std::span(draws.host_top_logprobs).first(n * kMaxLogprobs)};
  }

 private:
  // The inputs that the host does not know yet: tokens of the step before, which the device has drawn.
  void fill_inputs(const Batch& batch, int32_t* token_ids, Draws& before) {
    backend_.copy_to_host(before.host_tokens.data(), before.tokens.as<void>(),
                          static_cast<size_t>(before.count) * 4);
    for (size_t row = 0; row < batch.sources.size(); ++row) {
      const int32_t source = batch.sources[row];
      const int32_t known = batch.host.token_ids[row];
      // A row whose draw failed (-1) is dropped at the commit; any id will do for it.
      sources_[row] = source < 0 ? known : std::max(before.host_tokens[static_cast<size_t>(source)], 0);
    }
    backend_.copy_to_device(token_ids, sources_.data(), batch.sources.size() * 4);
  }

  Backend& backend_;
  int32_t vocab_used_;
  KvCache cache_;
  Decoder decoder_;
  Buffer batches_[2];
  Draws draws_[2];
  std::vector<int32_t> sources_;
  Mat logits_;
};

}  // namespace

Runner make_runner(const Model& model, Backend& backend, const CoreLimits& limits, int32_t vocab_used) {
  // Shared by the three functions, which std::function wants copyable.
  auto runner = std::make_shared<ModelRunner>(model, backend, limits, vocab_used);
  return {
      .launch = [runner](const Batch& batch) { return runner->launch(batch); },
      .sample = [runner](Ticket ticket, std::span<const SampleRow> rows) { runner->sample(ticket, rows); },
      .wait = [runner](Ticket ticket) { return runner->wait(ticket); }};
}

}  // namespace whippet
