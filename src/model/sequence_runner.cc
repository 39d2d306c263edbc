#include "model/sequence_runner.h"

#include <algorithm>
#include <numeric>

#include "backend/kv_memory.h"
#include "base/math.h"

namespace whippet {
namespace {

constexpr int32_t kBlockSize = 4;

}  // namespace

SequenceRunner::SequenceRunner(const Model& model, Backend& backend, int32_t max_length, DType kv_type,
                               int32_t max_rows)
    : model_(model),
      backend_(backend),
      decoder_(model.spec, model.weights, backend,
               {.max_tokens = max_rows > 0 ? max_rows : max_length,
                .max_logits = max_rows > 0 ? max_rows : max_length}) {
  const ModelSpec& spec = model.spec;
  const int32_t num_blocks = ceil_div(max_length, kBlockSize) + 1;
  KvCacheView shape;
  shape.dtype = kv_type;
  shape.num_blocks = num_blocks;
  shape.block_size = kBlockSize;
  shape.num_kv_heads = spec.num_kv_heads;
  shape.head_dim = spec.head_dim;
  for (int32_t i = 0; i < spec.num_layers; ++i) caches_.push_back(allocate_kv(backend, shape, cache_memory_));
  // Blocks in an order of their own, so that a kernel which ignores the table is caught. Block 0 stays free.
  for (int32_t b = num_blocks - 1; b > 0; b -= 2) block_table_.push_back(b);
  for (int32_t b = num_blocks - 2; b > 0; b -= 2) block_table_.push_back(b);
  restart(max_length);
}

void SequenceRunner::restart(int32_t rope_length) {
  length_ = 0;
  inv_freq_ = rope_frequencies(model_.spec, rope_length);
}

template <class T>
const T* SequenceRunner::upload(const std::vector<T>& values) {
  const size_t bytes = values.size() * sizeof(T);
  uploads_.push_back(backend_.allocate(bytes));
  backend_.copy_to_device(uploads_.back().as<void>(), values.data(), bytes);
  return uploads_.back().as<T>();
}

std::vector<float> SequenceRunner::feed(std::span<const int32_t> ids) {
  const auto count = static_cast<int32_t>(ids.size());
  std::vector<int32_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), length_);
  std::vector<int32_t> rows(ids.size());
  std::iota(rows.begin(), rows.end(), 0);
  length_ += count;
  WH_CHECK_LE(static_cast<size_t>(length_), block_table_.size() * kBlockSize);

  uploads_.clear();
  BatchView batch;
  batch.num_tokens = count;
  batch.num_seqs = 1;
  batch.num_logits = count;
  batch.max_blocks_per_seq = static_cast<int32_t>(block_table_.size());
  batch.token_ids = upload(std::vector<int32_t>(ids.begin(), ids.end()));
  batch.positions = upload(positions);
  batch.seq_of_token = upload(std::vector<int32_t>(ids.size(), 0));
  batch.row_begin = upload(std::vector<int32_t>{0, count});
  batch.kv_len = upload(std::vector<int32_t>{length_});
  batch.block_table = upload(block_table_);
  batch.logit_rows = upload(rows);
  batch.inv_freq = upload(inv_freq_);
  const Mat logits = decoder_.forward(batch, caches_);
  std::vector<float> out(static_cast<size_t>(logits.rows) * static_cast<size_t>(logits.cols));
  backend_.copy_to_host(out.data(), logits.data, out.size() * sizeof(float));
  return out;
}

int32_t argmax(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<int32_t> greedy(SequenceRunner& runner, std::span<const int32_t> prompt, int32_t chunk,
                            int32_t steps, int32_t rope_length) {
  runner.restart(rope_length);
  std::vector<float> logits;
  for (size_t at = 0; at < prompt.size(); at += static_cast<size_t>(chunk)) {
    logits = runner.feed(prompt.subspan(at, std::min(prompt.size() - at, static_cast<size_t>(chunk))));
  }
  std::vector<int32_t> out;
  while (static_cast<int32_t>(out.size()) < steps) {
    if (!out.empty()) logits = runner.feed({&out.back(), 1});
    out.push_back(argmax(std::span(logits).last(static_cast<size_t>(runner.vocab()))));
  }
  return out;
}

}  // namespace whippet
