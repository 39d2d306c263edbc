#include "engine/fake_runner.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "engine/hash.h"

namespace whippet {
namespace {

constexpr uint64_t kPoisoned = ~uint64_t{0};

bool allowed(const SampleRow& row, int32_t token) {
  if (row.mask != nullptr && (row.mask[token / 32] >> (token % 32) & 1) == 0) return false;
  for (int32_t i = 0; i < row.num_bias; ++i) {
    if (row.bias_ids[i] == token && std::isinf(row.bias[i])) return false;
  }
  return true;
}

}  // namespace

FakeRunner::FakeRunner(const CoreLimits& limits, int32_t vocab)
    : limits_(limits),
      vocab_(vocab),
      cache_(static_cast<size_t>(limits.num_blocks) * static_cast<size_t>(limits.block_size)) {
  for (Step& step : steps_) {
    const auto logits = static_cast<size_t>(limits.max_num_logits);
    step.top_ids.resize(logits * kMaxLogprobs, -1);
    step.top_logprobs.resize(logits * kMaxLogprobs);
  }
}

Runner FakeRunner::runner() {
  return {.launch = [this](const Batch& batch) { return launch(batch); },
          .sample = [this](Ticket ticket, std::span<const SampleRow> rows) { sample(ticket, rows); },
          .wait = [this](Ticket ticket) { return wait(ticket); }};
}

FakeRunner::Place& FakeRunner::place(const BatchView& batch, int32_t seq, int32_t position) {
  const int32_t index = position / limits_.block_size;
  WH_CHECK(index < batch.max_blocks_per_seq, "position {}", position);
  const int32_t block = batch.block_table[seq * batch.max_blocks_per_seq + index];
  WH_CHECK(block >= 0 && block < limits_.num_blocks, "position {} is in block {}", position, block);
  return cache_[static_cast<size_t>(block * limits_.block_size + position % limits_.block_size)];
}

Ticket FakeRunner::launch(const Batch& batch) {
  const BatchView& view = batch.host;
  WH_CHECK(view.num_tokens <= limits_.max_num_batched_tokens && view.num_seqs <= limits_.max_num_seqs);
  max_rows_ = std::max(max_rows_, view.num_tokens);
  if (batch.rounded_rows > 0) rounded_.emplace(batch.rounded_rows, view.max_blocks_per_seq);
  ++step_;
  row_values_.resize(static_cast<size_t>(view.num_tokens));
  for (int32_t seq = 0; seq < view.num_seqs; ++seq) {
    for (int32_t row = view.row_begin[seq]; row < view.row_begin[seq + 1]; ++row) run_row(batch, seq, row);
  }
  Step& step = steps_[batch.slot];
  step.values.clear();
  for (int32_t i = 0; i < view.num_logits; ++i) {
    WH_CHECK(i == 0 || view.logit_rows[i] > view.logit_rows[i - 1]);
    step.values.push_back(row_values_[static_cast<size_t>(view.logit_rows[i])]);
  }
  return batch.slot;
}

void FakeRunner::run_row(const Batch& batch, int32_t seq, int32_t row) {
  const BatchView& view = batch.host;
  const int32_t position = view.positions[row];
  WH_CHECK_EQ(view.seq_of_token[row], seq);
  WH_CHECK_EQ(position, view.kv_len[seq] - view.row_begin[seq + 1] + row);
  const int32_t source = batch.sources[static_cast<size_t>(row)];
  const auto& before = steps_[1 - batch.slot].tokens;
  const int32_t token = source >= 0 ? before.at(static_cast<size_t>(source)) : view.token_ids[row];
  const uint64_t previous = position == 0 ? 1 : place(view, seq, position - 1).value;
  Place& own = place(view, seq, position);
  WH_CHECK(own.written != step_, "two rows of one step write to one place");
  const bool poisoned = previous == kPoisoned || token == poison;
  own = {poisoned ? kPoisoned : hash_mix(previous, static_cast<uint64_t>(token)), previous, step_};
  row_values_[static_cast<size_t>(row)] = own.value;
  // Whatever a layer may read must be this sequence's: each place follows from the one before.
  const int32_t first = limits_.window > 0 ? std::max(0, position - limits_.window + 1) : 0;
  for (int32_t p = std::max(first, 1); p <= position; p += p < position - 2 ? limits_.block_size : 1) {
    if (p - 1 >= first)
      WH_CHECK(place(view, seq, p).before == place(view, seq, p - 1).value, "position {}", p);
  }
}

void FakeRunner::sample(Ticket ticket, std::span<const SampleRow> rows) {
  Step& step = steps_[ticket];
  WH_CHECK_EQ(rows.size(), step.values.size());
  step.tokens.clear();
  step.ranks.assign(rows.size(), 1);
  step.logprobs.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    const SampleRow& row = rows[i];
    uint64_t drawn = step.values[i];
    if (row.temperature > 0) drawn = hash_mix(drawn, hash_mix(row.seed, static_cast<uint64_t>(row.position)));
    for (int32_t k = 0; k < row.num_seen; ++k) drawn += static_cast<uint64_t>(row.output_counts[k]);
    auto token = static_cast<int32_t>(drawn % static_cast<uint64_t>(vocab_));
    int32_t tries = 0;
    while (tries < vocab_ && !allowed(row, token)) token = (token + 1) % vocab_, ++tries;
    if (row.num_bias == 1 && row.bias[0] > 1e9f) token = row.bias_ids[0];
    step.tokens.push_back(tries == vocab_ || step.values[i] == kPoisoned ? -1 : token);
    step.logprobs.push_back(-static_cast<float>(step.values[i] % 1000) / 1000);
  }
}

StepOutput FakeRunner::wait(Ticket ticket) {
  const Step& step = steps_[ticket];
  return {.tokens = step.tokens,
          .logprobs = step.logprobs,
          .ranks = step.ranks,
          .top_ids = step.top_ids,
          .top_logprobs = step.top_logprobs};
}

}  // namespace whippet
