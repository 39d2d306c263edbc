#include "api/logits_model.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "api/config_rules.h"
#include "api/loaded_model.h"
#include "api/quantization.h"
#include "backend/registry.h"
#include "base/math.h"
#include "engine/memory.h"

namespace whippet {
namespace {

constexpr int32_t kRows = 64;  // of one forward: the logits of a large vocabulary stay below 40 MB
constexpr int32_t kBlockSize = 16;

CoreLimits cache_limits(int32_t num_blocks, DType kv_type) {
  CoreLimits limits;
  limits.block_size = kBlockSize;
  limits.num_blocks = num_blocks;
  limits.kv_type = kv_type;
  return limits;
}

}  // namespace

Result<std::unique_ptr<LogitsModel>> LogitsModel::load(const EngineConfig& config, int32_t max_len) {
  WH_TRY(check_config(config));
  WH_ASSIGN(const ResolvedModel source, find_model(config));
  WH_ASSIGN(const Checkpoint checkpoint, open_checkpoint(source.path));
  WH_ASSIGN(const ModelSpec spec, read_spec(checkpoint));
  WH_ASSIGN(const OnLoad on_load, read_quantization(config.quantization, checkpoint));
  const DType computed = kv_type_of(compute_type(config.dtype), spec);
  WH_ASSIGN(auto backend, make_backend(config.device, {.num_threads = config.threads,
                                                       .isa = config.isa,
                                                       .activations = computed,
                                                       .deterministic = config.deterministic}));
  WH_ASSIGN(const DType kv_type, read_kv_type(config, computed, backend->memory().has_value()));
  WH_ASSIGN(Model model, load_model(checkpoint, *backend, compute_type(config.dtype), on_load,
                                    packed_place(config, source)));
  apply_sliding_window(config, model.spec);
  const uint64_t bytes =
      static_cast<uint64_t>(max_len) * static_cast<uint64_t>(model.spec.kv_bytes_per_token(kv_type));
  const uint64_t available = memory_of(*backend, kv_type).available;
  if (bytes > available)
    return make_error(Code::kResourceExhausted,
                      "the longest line has {} tokens, whose KV cache takes {} bytes of the {} that are free",
                      max_len, bytes, available);
  return std::unique_ptr<LogitsModel>(
      new LogitsModel(std::move(backend), std::move(model), kv_type, max_len));
}

LogitsModel::LogitsModel(std::unique_ptr<Backend> backend, Model model, DType kv_type, int32_t max_len)
    : backend_(std::move(backend)),
      model_(std::move(model)),
      num_blocks_(ceil_div(std::max(max_len, 1), kBlockSize)) {
  cache_ = std::make_unique<KvCache>(model_.spec, cache_limits(num_blocks_, kv_type), *backend_);
  decoder_ = std::make_unique<Decoder>(model_.spec, model_.weights, *backend_,
                                       DecoderLimits{.max_tokens = kRows, .max_logits = kRows});
  host_words_.resize(static_cast<size_t>(4 * kRows + 3 + model_.spec.head_dim / 2 + num_blocks_));
  words_ = backend_->allocate(host_words_.size() * sizeof(int32_t));
  host_logits_.resize(static_cast<size_t>(kRows) * static_cast<size_t>(vocab_size()));
}

BatchView LogitsModel::batch_of(std::span<const int32_t> ids, int32_t begin, int32_t count) {
  size_t next = 0;
  const auto put = [&](size_t words, auto&& value_at) {
    const int32_t* device = words_.as<int32_t>() + next;
    for (size_t i = 0; i < words; ++i) host_words_[next++] = value_at(static_cast<int32_t>(i));
    return device;
  };
  const auto rows = static_cast<size_t>(count);
  const std::vector<float> frequencies = rope_frequencies(model_.spec, static_cast<int32_t>(ids.size()));
  BatchView batch;
  batch.num_tokens = batch.num_logits = count;
  batch.num_seqs = 1;
  batch.max_blocks_per_seq = num_blocks_;
  batch.token_ids = put(rows, [&](int32_t i) { return ids[static_cast<size_t>(begin + i)]; });
  batch.positions = put(rows, [&](int32_t i) { return begin + i; });
  batch.seq_of_token = put(rows, [](int32_t) { return 0; });
  batch.logit_rows = put(rows, [](int32_t i) { return i; });
  batch.row_begin = put(2, [&](int32_t i) { return i * count; });
  batch.kv_len = put(1, [&](int32_t) { return begin + count; });
  batch.block_table = put(static_cast<size_t>(num_blocks_), [](int32_t i) { return i; });
  batch.inv_freq = reinterpret_cast<const float*>(put(frequencies.size(), [&](int32_t i) {
    return std::bit_cast<int32_t>(frequencies[static_cast<size_t>(i)]);
  }));
  backend_->copy_to_device(words_.as<void>(), host_words_.data(), next * sizeof(int32_t));
  return batch;
}

Status LogitsModel::forward(std::span<const int32_t> ids,
                            const std::function<Status(std::span<const float>)>& on_rows) {
  for (size_t begin = 0; begin < ids.size(); begin += kRows) {
    WH_ASSIGN(const std::span<const float> logits, rows(ids, begin));
    WH_TRY(on_rows(logits));
  }
  return {};
}

Result<std::span<const float>> LogitsModel::rows(std::span<const int32_t> ids, size_t begin) {
  WH_CHECK_LT(begin, ids.size());
  WH_CHECK_LE(ids.size(), static_cast<size_t>(num_blocks_) * kBlockSize);
  const auto count = static_cast<int32_t>(std::min<size_t>(kRows, ids.size() - begin));
  for (const int32_t id : ids.subspan(begin, static_cast<size_t>(count))) {
    if (id < 0 || id >= vocab_size())
      return make_error(Code::kInvalidArgument, "token id {} is outside the vocabulary of {}", id,
                        vocab_size());
  }
  const Mat logits = decoder_->forward(batch_of(ids, static_cast<int32_t>(begin), count), cache_->layers());
  const auto row = static_cast<size_t>(vocab_size());
  for (int32_t r = 0; r < count; ++r)
    backend_->copy_to_host(host_logits_.data() + static_cast<size_t>(r) * row, logits.row<float>(r),
                           row * sizeof(float));
  return std::span<const float>(host_logits_).first(static_cast<size_t>(count) * row);
}

}  // namespace whippet
