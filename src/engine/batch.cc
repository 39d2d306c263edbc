#include "engine/batch.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/math.h"
#include "engine/sequence.h"

namespace whippet {
namespace {

// Where each array of a batch starts in its words; every one on a cache line.
struct Layout {
  int64_t token_ids, sources, positions, seq_of_token, row_begin, kv_len, logit_rows, inv_freq, block_table,
      size;

  Layout(int64_t num_tokens, int64_t num_seqs, int64_t num_logits, int64_t num_frequencies,
         int64_t max_blocks) {
    int64_t next = 0;
    const auto place = [&next](int64_t words) {
      return std::exchange(next, next + align_up<int64_t>(words, 16));
    };
    token_ids = place(num_tokens);
    sources = place(num_tokens);
    positions = place(num_tokens);
    seq_of_token = place(num_tokens);
    row_begin = place(num_seqs + 1);
    kv_len = place(num_seqs);
    logit_rows = place(num_logits);
    inv_freq = place(num_seqs * num_frequencies);
    block_table = place(num_seqs * max_blocks);
    size = next;
  }
};

void view_at(const Layout& at, const int32_t* base, BatchView& view) {
  view.token_ids = base + at.token_ids;
  view.sources = base + at.sources;
  view.positions = base + at.positions;
  view.seq_of_token = base + at.seq_of_token;
  view.row_begin = base + at.row_begin;
  view.kv_len = base + at.kv_len;
  view.logit_rows = base + at.logit_rows;
  view.inv_freq = reinterpret_cast<const float*>(base + at.inv_freq);
  view.block_table = base + at.block_table;
}

// The sizes that steps of one row a sequence are filled up to: few, and seldom more than a quarter too large.
int32_t rounded(int32_t rows, int32_t most) {
  int32_t size = 1;
  while (size < rows && size < 8) size *= 2;
  if (size < rows) size = align_up(rows, rows <= 64 ? 8 : rows <= 256 ? 32 : 64);
  return std::min(size, most);
}

// Blocks a sequence: few sizes, so that each can be made known to the device beforehand.
size_t rounded_blocks(size_t blocks, size_t most) {
  size_t size = 64;
  while (size < blocks) size *= 4;
  return std::max(std::min(size, most), blocks);
}

bool one_row_each(const Plan& plan) {
  return std::ranges::all_of(plan.rows,
                             [](const PlannedRows& rows) { return rows.count == 1 && rows.num_logits == 1; });
}

// A batch of these counts over `words`, none of them filled in.
Batch& begin(Batch& batch, int32_t slot, int32_t* words, const Layout& at, const BatchView& counts) {
  batch.slot = slot;
  batch.words = {words, static_cast<size_t>(at.size)};
  batch.sources = {words + at.sources, static_cast<size_t>(counts.num_tokens)};
  batch.has_sources = false;
  batch.rounded_rows = 0;
  batch.host = counts;
  view_at(at, words, batch.host);
  return batch;
}

// Rows [from, to), which belong to nothing.
void fill_up(const Layout& at, int32_t from, int32_t to, int64_t num_frequencies, int64_t max_blocks,
             int32_t* words) {
  for (int32_t r = from; r < to; ++r) {
    words[at.token_ids + r] = 0;
    words[at.sources + r] = words[at.positions + r] = -1;
    words[at.seq_of_token + r] = words[at.row_begin + r] = words[at.logit_rows + r] = r;
    words[at.kv_len + r] = 0;
  }
  words[at.row_begin + to] = to;
  std::fill_n(words + at.inv_freq + from * num_frequencies, (to - from) * num_frequencies, 0);
  std::fill_n(words + at.block_table + from * max_blocks, (to - from) * max_blocks, -1);
}

}  // namespace

size_t BatchBuilder::max_words(const CoreLimits& limits, int32_t num_frequencies) {
  return static_cast<size_t>(Layout(limits.max_num_batched_tokens, limits.max_num_seqs, limits.max_num_logits,
                                    num_frequencies, limits.max_blocks_per_seq())
                                 .size);
}

BatchBuilder::BatchBuilder(const CoreLimits& limits, int32_t num_frequencies)
    : limits_(limits), num_frequencies_(num_frequencies) {
  for (Buffer& words : words_) words = Buffer::host(max_words(limits, num_frequencies) * sizeof(int32_t));
}

std::vector<BatchShape> BatchBuilder::rounded_shapes() const {
  std::vector<BatchShape> shapes;
  const int32_t most = limits_.max_blocks_per_seq();
  for (int32_t rows = 1; rows <= limits_.max_num_seqs; ++rows) {
    if (rounded(rows, limits_.max_num_seqs) != rows) continue;
    for (int32_t blocks = 1; blocks <= most; ++blocks) {
      blocks = static_cast<int32_t>(rounded_blocks(static_cast<size_t>(blocks), static_cast<size_t>(most)));
      shapes.push_back({rows, blocks});
    }
  }
  return shapes;
}

const Batch& BatchBuilder::blank(const BatchShape& shape) {
  const int32_t slot = std::exchange(next_, 1 - next_);
  const Layout at(shape.rows, shape.rows, shape.rows, num_frequencies_, shape.blocks);
  Batch& batch =
      begin(batch_[slot], slot, words_[slot].as<int32_t>(), at, {.max_blocks_per_seq = shape.blocks});
  batch.has_sources = true;
  batch.rounded_rows = shape.rows;
  int32_t* words = words_[slot].as<int32_t>();
  words[at.row_begin] = 0;
  fill_up(at, 0, shape.rows, num_frequencies_, shape.blocks, words);
  return batch;
}

const Batch& BatchBuilder::build(const Plan& plan) {
  const int32_t slot = std::exchange(next_, 1 - next_);
  const auto num_seqs = static_cast<int32_t>(plan.rows.size());
  WH_CHECK(num_seqs <= limits_.max_num_seqs && plan.num_tokens <= limits_.max_num_batched_tokens &&
               plan.num_logits <= limits_.max_num_logits,
           "{} sequences, {} rows, {} logits", num_seqs, plan.num_tokens, plan.num_logits);
  size_t max_blocks = 1;
  for (const PlannedRows& rows : plan.rows) max_blocks = std::max(max_blocks, rows.sequence->blocks.size());

  const bool round = limits_.round_batches && one_row_each(plan);
  const int32_t rows_to = round ? rounded(num_seqs, limits_.max_num_seqs) : 0;
  if (round) max_blocks = rounded_blocks(max_blocks, static_cast<size_t>(limits_.max_blocks_per_seq()));
  const Layout at(std::max(rows_to, plan.num_tokens), std::max(rows_to, num_seqs),
                  std::max(rows_to, plan.num_logits), num_frequencies_, static_cast<int64_t>(max_blocks));
  int32_t* words = words_[slot].as<int32_t>();
  Batch& batch = begin(batch_[slot], slot, words, at,
                       {.num_tokens = plan.num_tokens,
                        .num_seqs = num_seqs,
                        .num_logits = plan.num_logits,
                        .max_blocks_per_seq = static_cast<int32_t>(max_blocks)});
  batch.rounded_rows = rows_to;
  batch.has_sources = round;  // whether there are some or not, so that it makes no shape of its own

  int32_t row = 0;
  for (int32_t s = 0; s < num_seqs; ++s) {
    const PlannedRows& rows = plan.rows[static_cast<size_t>(s)];
    const Sequence& sequence = *rows.sequence;
    words[at.row_begin + s] = row;
    words[at.kv_len + s] = rows.begin + rows.count;
    for (int32_t i = 0; i < rows.count; ++i, ++row) {
      const auto position = static_cast<size_t>(rows.begin + i);
      const bool known = position < sequence.tokens.size();
      words[at.token_ids + row] = known ? sequence.tokens[position] : 0;
      words[at.positions + row] = rows.begin + i;
      words[at.seq_of_token + row] = s;
      words[at.sources + row] = known ? -1 : rows.input_source;
      batch.has_sources |= !known;
    }
    for (int32_t i = 0; i < rows.num_logits; ++i) {
      words[at.logit_rows + rows.first_logit + i] = row - rows.num_logits + i;
    }
    if (num_frequencies_ > 0) {
      std::memcpy(words + at.inv_freq + static_cast<int64_t>(s) * num_frequencies_,
                  sequence.frequencies.data(), static_cast<size_t>(num_frequencies_) * sizeof(float));
    }
    int32_t* table = words + at.block_table + static_cast<int64_t>(s) * static_cast<int64_t>(max_blocks);
    std::ranges::copy(sequence.blocks, table);
    std::fill(table + sequence.blocks.size(), table + max_blocks, -1);
  }
  words[at.row_begin + num_seqs] = row;
  if (round) fill_up(at, num_seqs, rows_to, num_frequencies_, static_cast<int64_t>(max_blocks), words);
  return batch;
}

BatchView Batch::at(const int32_t* base) const {
  BatchView view = host;
  const auto moved = [&](const auto* pointer) {
    return reinterpret_cast<decltype(pointer)>(base +
                                               (reinterpret_cast<const int32_t*>(pointer) - words.data()));
  };
  if (rounded_rows > 0) view.num_tokens = view.num_seqs = view.num_logits = rounded_rows;
  view.token_ids = moved(host.token_ids);
  view.sources = moved(host.sources);
  view.positions = moved(host.positions);
  view.seq_of_token = moved(host.seq_of_token);
  view.row_begin = moved(host.row_begin);
  view.kv_len = moved(host.kv_len);
  view.logit_rows = moved(host.logit_rows);
  view.inv_freq = moved(host.inv_freq);
  view.block_table = moved(host.block_table);
  return view;
}

}  // namespace whippet
