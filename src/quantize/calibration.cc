#include "quantize/calibration.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/math.h"

namespace whippet {
namespace {

constexpr int32_t kRows = 1024;  // that one product takes
constexpr int32_t kBlockSize = 16;

}  // namespace

Moments::Moments(Backend& backend, int32_t size) : backend_(backend), size_(size) {
  const auto n = static_cast<size_t>(size);
  turned_ = backend.allocate(n * kRows * sizeof(float));
  product_ = backend.allocate(n * n * sizeof(float));
  sum_.resize(n * n);
}

void Moments::add(ConstMat rows) {
  WH_CHECK(rows.cols == size_ && rows.dtype == DType::kF32);
  auto* turned = turned_.as<float>();
  for (int32_t r = 0; r < rows.rows; ++r) {
    const auto* row = rows.row<float>(r);
    for (int32_t i = 0; i < size_; ++i)
      turned[static_cast<size_t>(i) * kRows + static_cast<size_t>(waiting_)] = row[i];
    if (++waiting_ == kRows) flush();
  }
}

void Moments::flush() {
  CanonicalLinear weight;
  weight.out = size_;
  weight.in = kRows;
  weight.codes = {turned_.as<std::byte>(), static_cast<size_t>(size_) * kRows * sizeof(float)};
  const Result<LinearWeight> packed = backend_.pack(weight, ComputeType::kF32);
  WH_CHECK(packed.ok(), "{}", packed.error().message);
  const Mat product = product_.mat(DType::kF32, size_, size_);
  backend_.linear(turned_.mat(DType::kF32, size_, kRows), *packed, product);
  const auto* from = product_.as<float>();
  for (size_t i = 0; i < sum_.size(); ++i) sum_[i] += from[i];
  std::memset(turned_.as<void>(), 0, turned_.bytes());
  waiting_ = 0;
}

std::span<const float> Moments::sum() {
  if (waiting_ > 0) flush();
  return sum_;
}

uint64_t Calibration::memory(const ModelSpec& spec, uint64_t tokens) {
  const auto square = [](int32_t n) { return static_cast<uint64_t>(n) * static_cast<uint64_t>(n); };
  const int32_t widest = std::max({spec.hidden_size, spec.q_size(), spec.intermediate_size});
  const uint64_t moments =
      2 * (2 * square(spec.hidden_size) + square(spec.q_size()) + square(spec.intermediate_size));
  return 4 * (tokens * static_cast<uint64_t>(spec.hidden_size) + moments + 5 * square(widest));
}

Calibration::Calibration(const ModelSpec& spec, Backend& backend, int32_t longest)
    : spec_(spec),
      windows_(spec.window_of_layer),
      backend_(backend),
      num_blocks_(ceil_div(longest, kBlockSize)),
      frequencies_(rope_frequencies(spec, longest)) {
  spec_.num_layers = 1;
  weights_.layers.resize(1);
  const size_t bytes =
      static_cast<size_t>(num_blocks_) * kBlockSize * static_cast<size_t>(spec.kv_size()) * sizeof(float);
  cache_.push_back(backend.allocate(bytes));
  cache_.push_back(backend.allocate(bytes));
  decoder_ = std::make_unique<Decoder>(spec_, weights_, backend,
                                       DecoderLimits{.max_tokens = longest, .max_logits = 1});
}

Result<std::unique_ptr<Calibration>> Calibration::create(const Checkpoint& checkpoint, const ModelSpec& spec,
                                                         Backend& backend,
                                                         std::span<const std::vector<int32_t>> sequences) {
  WH_CHECK(backend.activation_type() == DType::kF32 && !sequences.empty());
  size_t longest = 1;
  for (const auto& ids : sequences) longest = std::max(longest, ids.size());
  std::unique_ptr<Calibration> calibration(new Calibration(spec, backend, static_cast<int32_t>(longest)));
  WH_ASSIGN(const LinearWeight embedding, load_embedding(checkpoint, spec, backend, ComputeType::kF32));
  for (const auto& ids : sequences) {
    for (const int32_t id : ids) WH_CHECK(id >= 0 && id < spec.vocab_size, "{}", id);
    std::vector<float> state(ids.size() * static_cast<size_t>(spec.hidden_size));
    backend.embed(
        ids.data(), embedding,
        {state.data(), DType::kF32, static_cast<int32_t>(ids.size()), spec.hidden_size, spec.hidden_size});
    calibration->states_.push_back(std::move(state));
  }
  return calibration;
}

BatchView Calibration::batch_of(int32_t length) {
  const auto rows = static_cast<size_t>(length);
  words_.assign(2 * rows + 3 + static_cast<size_t>(num_blocks_), 0);
  int32_t* next = words_.data();
  const auto take = [&](size_t count) { return std::exchange(next, next + count); };
  BatchView batch;
  batch.num_tokens = length;
  batch.num_seqs = 1;
  batch.max_blocks_per_seq = num_blocks_;
  int32_t* positions = take(rows);
  std::iota(positions, positions + length, 0);
  batch.positions = positions;
  batch.seq_of_token = take(rows);
  int32_t* begin = take(2);
  begin[1] = length;
  batch.row_begin = begin;
  int32_t* kv_len = take(1);
  *kv_len = length;
  batch.kv_len = kv_len;
  int32_t* blocks = take(static_cast<size_t>(num_blocks_));
  std::iota(blocks, blocks + num_blocks_, 0);
  batch.block_table = blocks;
  batch.inv_freq = frequencies_.data();
  return batch;
}

void Calibration::run(LayerWeights weights, int32_t index, bool keep) {
  weights_.layers[0] = std::move(weights);
  spec_.window_of_layer = {windows_[static_cast<size_t>(index)]};
  const KvCacheView cache{.k = cache_[0].as<void>(),
                          .v = cache_[1].as<void>(),
                          .dtype = DType::kF32,
                          .num_blocks = num_blocks_,
                          .block_size = kBlockSize,
                          .num_kv_heads = spec_.num_kv_heads,
                          .head_dim = spec_.head_dim};
  for (std::vector<float>& state : states_) {
    const auto rows = static_cast<int32_t>(state.size() / static_cast<size_t>(spec_.hidden_size));
    const size_t bytes = state.size() * sizeof(float);
    auto* hidden = decoder_->hidden(rows).row<float>(0);
    std::memcpy(hidden, state.data(), bytes);
    decoder_->run_layer(batch_of(rows), 0, cache);
    if (!keep) std::memcpy(state.data(), hidden, bytes);
  }
}

LayerMoments Calibration::measure(LayerWeights weights, int32_t index) {
  LayerMoments moments{{backend_, spec_.hidden_size},
                       {backend_, spec_.q_size()},
                       {backend_, spec_.hidden_size},
                       {backend_, spec_.intermediate_size}};
  const LayerWeights& layer = weights_.layers[0];
  decoder_->observe([&](const Projection& projection, ConstMat input) {
    Moments& of = &projection == &layer.qkv       ? moments.qkv
                  : &projection == &layer.o       ? moments.o
                  : &projection == &layer.gate_up ? moments.gate_up
                                                  : moments.down;
    of.add(input);
  });
  run(std::move(weights), index, true);
  decoder_->observe({});
  return moments;
}

void Calibration::advance(LayerWeights weights, int32_t index) { run(std::move(weights), index, false); }

}  // namespace whippet
