#include "cli/bench_steps.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <vector>

#include "backend/kv_memory.h"
#include "base/math.h"

namespace whippet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int32_t kBlockSize = 16;
constexpr int32_t kChunk = 512;  // rows of a step of the prompts

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Numbers of a step, put together on the host and copied at once.
class Upload {
 public:
  // Offset of the values.
  size_t add(const std::vector<int32_t>& values) {
    const size_t at = all_.size();
    all_.insert(all_.end(), values.begin(), values.end());
    return at;
  }
  const std::vector<int32_t>& all() const { return all_; }

 private:
  std::vector<int32_t> all_;
};

}  // namespace

StepBench::StepBench(const Model& model, Backend& backend, const StepWork& work, DType kv_type)
    : model_(model),
      backend_(backend),
      work_(work),
      decoder_(model.spec, model.weights, backend,
               {.max_tokens = std::max(kChunk, work.batch), .max_logits = work.batch}),
      blocks_per_sequence_(ceil_div(work.prompt_len + work.output_len, kBlockSize)),
      inv_freq_(rope_frequencies(model.spec, work.prompt_len + work.output_len)) {
  const ModelSpec& spec = model.spec;
  const int32_t blocks = blocks_per_sequence_ * work.batch;
  KvCacheView shape;
  shape.dtype = kv_type;
  shape.num_blocks = blocks;
  shape.block_size = kBlockSize;
  shape.num_kv_heads = spec.num_kv_heads;
  shape.head_dim = spec.head_dim;
  for (int32_t i = 0; i < spec.num_layers; ++i) caches_.push_back(allocate_kv(backend, shape, cache_memory_));
  const auto most_rows = static_cast<size_t>(std::max(kChunk, work.batch));
  const size_t numbers =
      4 * most_rows + 4 * static_cast<size_t>(work.batch) + 2 + static_cast<size_t>(blocks);
  inputs_ = backend.allocate(numbers * sizeof(int32_t));
  ids_ = backend.allocate(most_rows * sizeof(int32_t));
  tokens_ = backend.allocate(static_cast<size_t>(work.batch) * sizeof(int32_t));
  frequencies_ = backend.allocate(inv_freq_.size() * static_cast<size_t>(work.batch) * sizeof(float));
  std::vector<float> each_sequence;
  for (int32_t s = 0; s < work.batch; ++s)
    each_sequence.insert(each_sequence.end(), inv_freq_.begin(), inv_freq_.end());
  backend.copy_to_device(frequencies_.as<void>(), each_sequence.data(), each_sequence.size() * sizeof(float));
}

void StepBench::step(int32_t sequence, int32_t first, int32_t count, bool sample) {
  const bool all = sequence < 0;
  const int32_t rows = all ? work_.batch : count, sequences = all ? work_.batch : 1;
  std::vector<int32_t> sources(static_cast<size_t>(rows)), positions(sources), owners(sources), ids(sources);
  for (int32_t r = 0; r < rows; ++r) {
    const auto at = static_cast<size_t>(r);
    sources[at] = all ? r : -1;
    positions[at] = all ? first : first + r;
    owners[at] = all ? r : 0;
    ids[at] = (first + r * 7919) % model_.spec.vocab_size;
  }
  std::vector<int32_t> begins, lengths, table, logit_rows;
  for (int32_t s = 0; s < sequences; ++s) {
    begins.push_back(all ? s : 0);
    lengths.push_back(all ? first + 1 : first + count);
    const int32_t number = all ? s : sequence;
    for (int32_t b = 0; b < blocks_per_sequence_; ++b) table.push_back(number * blocks_per_sequence_ + b);
    if (sample) logit_rows.push_back(all ? s : count - 1);
  }
  begins.push_back(rows);
  Upload upload;
  const size_t source_at = upload.add(sources), position_at = upload.add(positions),
               owner_at = upload.add(owners);
  const size_t begin_at = upload.add(begins), length_at = upload.add(lengths), table_at = upload.add(table);
  const size_t logits_at = upload.add(logit_rows);
  backend_.copy_to_device(inputs_.as<void>(), upload.all().data(), upload.all().size() * sizeof(int32_t));
  backend_.copy_to_device(ids_.as<void>(), ids.data(), ids.size() * sizeof(int32_t));
  const auto* base = inputs_.as<int32_t>();

  BatchView batch;
  batch.num_tokens = rows;
  batch.num_seqs = sequences;
  batch.num_logits = static_cast<int32_t>(logit_rows.size());
  batch.max_blocks_per_seq = blocks_per_sequence_;
  batch.token_ids = ids_.as<int32_t>();
  batch.sources = base + source_at;
  batch.positions = base + position_at;
  batch.seq_of_token = base + owner_at;
  batch.row_begin = base + begin_at;
  batch.kv_len = base + length_at;
  batch.block_table = base + table_at;
  batch.logit_rows = base + logits_at;
  batch.inv_freq = frequencies_.as<float>();
  backend_.fill_inputs(batch, tokens_.as<int32_t>(), ids_.as<int32_t>());
  const Mat logits = decoder_.forward(batch, caches_);
  if (!sample) return;
  const std::vector<SampleRow> greedy(static_cast<size_t>(logits.rows));
  SampleArgs args;
  args.logits = logits;
  args.rows = greedy.data();
  args.vocab_used = model_.spec.vocab_size;
  args.tokens = tokens_.as<int32_t>() + (all ? 0 : sequence);
  backend_.sample(args);
  int32_t token = 0;  // the host sees each token, as an engine does
  backend_.copy_to_host(&token, args.tokens, sizeof(token));
}

PromptTimes StepBench::prompts() {
  PromptTimes times;
  const auto start = Clock::now();
  for (int32_t s = 0; s < work_.batch; ++s) {
    for (int32_t at = 0; at < work_.prompt_len; at += kChunk) {
      const int32_t count = std::min(kChunk, work_.prompt_len - at);
      step(s, at, count, at + count == work_.prompt_len);
    }
    if (s == 0) times.first = seconds_since(start);
  }
  times.all = seconds_since(start);
  return times;
}

std::vector<double> StepBench::answers() {
  std::vector<double> seconds;
  for (int32_t i = 0; i + 1 < work_.output_len; ++i) {
    const auto start = Clock::now();
    step(-1, work_.prompt_len + i, 1, true);
    seconds.push_back(seconds_since(start));
  }
  return seconds;
}

}  // namespace whippet
