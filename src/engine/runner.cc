#include "engine/runner.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/kv_cache.h"
#include "model/decoder.h"

namespace whippet {
namespace {

// What a step draws, on the device: read by the step after it before that draws in turn.
struct Draws {
  Buffer tokens, logprobs, ranks, top_ids, top_logprobs;
};

// The same of one ticket, on the host.
struct Drawn {
  Buffer tokens, logprobs, ranks, top_ids, top_logprobs;
  int32_t count = 0;
  bool has_logprobs = false;
  uint64_t mark = 0;  // everything is there
};

// Names a step by its shape where all that it hands to the device follows from that. (FNV-1a)
uint64_t key_of(const Batch& batch, const BatchView& view) {
  if (batch.rounded_rows == 0) return 0;
  uint64_t hash = 0xcbf29ce484222325;
  for (const int32_t part : {view.num_tokens, view.max_blocks_per_seq}) {
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ (static_cast<uint32_t>(part) >> shift & 255)) * 0x100000001b3;
  }
  return hash | 1;
}

class ModelRunner {
 public:
  ModelRunner(const Model& model, Backend& backend, const CoreLimits& limits, int32_t vocab_used)
      : backend_(backend),
        vocab_used_(vocab_used),
        cache_(model.spec, limits, backend),
        decoder_(model.spec, model.weights, backend,
                 {.max_tokens = limits.max_num_batched_tokens, .max_logits = limits.max_num_logits}) {
    batch_ = backend.allocate(BatchBuilder::max_words(limits, model.spec.head_dim / 2) * sizeof(int32_t));
    const auto rows = static_cast<size_t>(limits.max_num_logits);
    const auto take = [&](auto& of, const auto& allocate) {
      for (Buffer* buffer : {&of.tokens, &of.logprobs, &of.ranks}) *buffer = allocate(rows * 4);
      for (Buffer* buffer : {&of.top_ids, &of.top_logprobs}) *buffer = allocate(rows * kMaxLogprobs * 4);
    };
    take(draws_, [&](size_t bytes) { return backend.allocate(bytes); });
    for (Drawn& drawn : drawn_) take(drawn, [&](size_t bytes) { return backend.allocate_host(bytes); });
  }

  Ticket launch(const Batch& batch) {
    int32_t* words = batch_.as<int32_t>();
    backend_.copy_to_device(words, batch.words.data(), batch.words.size_bytes());
    const BatchView view = batch.at(words);
    backend_.run_step(key_of(batch, view), [&] {
      // The inputs that the host does not know yet: tokens of the step before. A row whose draw failed is
      // dropped at the commit; any id will do for it.
      if (batch.has_sources)
        backend_.fill_inputs(view, draws_.tokens.as<int32_t>(), const_cast<int32_t*>(view.token_ids));
      decoder_.forward(view, cache_.layers());
    });
    drawn_[batch.slot].count = batch.host.num_logits;
    return batch.slot;
  }

  void sample(Ticket ticket, std::span<const SampleRow> rows) {
    Drawn& drawn = drawn_[ticket];
    WH_CHECK_EQ(static_cast<int32_t>(rows.size()), drawn.count);
    drawn.has_logprobs = false;
    for (const SampleRow& row : rows) drawn.has_logprobs |= row.num_logprobs >= 0;
    if (!rows.empty()) draw(drawn, rows);
    drawn.mark = backend_.mark();
  }

  StepOutput wait(Ticket ticket) {
    const Drawn& drawn = drawn_[ticket];
    backend_.wait(drawn.mark);
    const auto n = static_cast<size_t>(drawn.count);
    return {.tokens = std::span(drawn.tokens.as<int32_t>(), n),
            .logprobs = std::span(drawn.logprobs.as<float>(), n),
            .ranks = std::span(drawn.ranks.as<int32_t>(), n),
            .top_ids = std::span(drawn.top_ids.as<int32_t>(), n * kMaxLogprobs),
            .top_logprobs = std::span(drawn.top_logprobs.as<float>(), n * kMaxLogprobs)};
  }

 private:
  void draw(Drawn& drawn, std::span<const SampleRow> rows) {
    SampleArgs args{.logits = decoder_.logits(drawn.count),
                    .rows = rows.data(),
                    .vocab_used = vocab_used_,
                    .max_logprobs = kMaxLogprobs};
    args.tokens = draws_.tokens.as<int32_t>();
    if (drawn.has_logprobs) {
      args.logprobs = draws_.logprobs.as<float>();
      args.ranks = draws_.ranks.as<int32_t>();
      args.top_ids = draws_.top_ids.as<int32_t>();
      args.top_logprobs = draws_.top_logprobs.as<float>();
    }
    backend_.sample(args);
    const auto fetch = [&](const Buffer& to, const Buffer& from, size_t words) {
      backend_.start_copy_to_host(to.as<void>(), from.as<void>(), words * 4);
    };
    const size_t n = rows.size();
    fetch(drawn.tokens, draws_.tokens, n);
    if (!drawn.has_logprobs) return;
    fetch(drawn.logprobs, draws_.logprobs, n);
    fetch(drawn.ranks, draws_.ranks, n);
    fetch(drawn.top_ids, draws_.top_ids, n * kMaxLogprobs);
    fetch(drawn.top_logprobs, draws_.top_logprobs, n * kMaxLogprobs);
  }

  Backend& backend_;
  int32_t vocab_used_;
  KvCache cache_;
  Decoder decoder_;
  Buffer batch_;
  Draws draws_;
  Drawn drawn_[2];
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
