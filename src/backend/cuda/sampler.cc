#include "backend/cuda/sampler.h"

#include <algorithm>
#include <cstring>

#include "backend/philox.h"
#include "base/math.h"

namespace whippet::cuda {
namespace {

constexpr int32_t kChunk = 512;  // logits: what a warp of sample_top reads at once

bool has_penalties(const SampleRow& row) {
  return row.num_seen > 0 &&
         (row.repetition_penalty != 1 || row.presence_penalty != 0 || row.frequency_penalty != 0);
}

bool is_plain_greedy(const SampleRow& row) {
  return row.temperature <= 0 && row.num_logprobs < 0 && row.num_bias == 0 && row.mask == nullptr &&
         !has_penalties(row);
}

// Whether sample_top may leave the row's draw or its logprobs to sample_rows.
bool may_be_wide(const SampleRow& row) {
  if (row.num_logprobs >= 0) return true;
  const bool has_bound = row.top_k > 0 && row.top_k <= kMostTop;
  return row.temperature > 0 && !has_bound && (row.top_k > 0 || row.top_p < 1 || row.min_p > 0);
}

// Copies lists one after another and gives their places on the device.
class Lists {
 public:
  Lists(std::byte* host, std::byte* device, size_t at) : host_(host), device_(device), at_(at) {}
  template <class T>
  const T* put(const T* from, size_t count) {
    if (from == nullptr || count == 0) return nullptr;
    if (host_ != nullptr) std::memcpy(host_ + at_, from, count * sizeof(T));
    const auto* place = reinterpret_cast<const T*>(device_ + at_);
    at_ += align_up(count * sizeof(T), size_t{16});
    return place;
  }
  size_t bytes() const { return at_; }

 private:
  std::byte* host_;
  std::byte* device_;
  size_t at_;
};

DeviceRow device_row(const SampleRow& from, int32_t vocab, Lists& lists) {
  DeviceRow to{.row = from};
  to.uniform = uniform_draw(from.seed, from.position);
  SampleRow& row = to.row;
  if (!has_penalties(from)) row.num_seen = 0;
  const auto seen = static_cast<size_t>(row.num_seen), bias = static_cast<size_t>(row.num_bias);
  row.seen_ids = lists.put(from.seen_ids, seen);
  if (from.presence_penalty == 0 && from.frequency_penalty == 0) row.output_counts = nullptr;
  row.output_counts = lists.put(row.output_counts, seen);
  row.bias_ids = lists.put(from.bias_ids, bias);
  row.bias = lists.put(from.bias, bias);
  row.mask = lists.put(from.mask, static_cast<size_t>(ceil_div(vocab, 32)));
  return to;
}

}  // namespace

Sampler::~Sampler() {
  if (copied_ != nullptr) cudaEventDestroy(copied_);
}

void Sampler::run(Device& device, const SampleArgs& args) {
  const int32_t rows = args.logits.rows;
  if (rows == 0) return;
  size_t saved = 0;
  const bool greedy = std::all_of(args.rows, args.rows + rows, is_plain_greedy);
  const size_t bytes = greedy ? 0 : lay_out(args, saved);
  make_room(rows, bytes, saved);
  SampleScratch scratch;
  scratch.best = best_.as<unsigned long long>();
  scratch.counters = counters_.as<int32_t>();
  if (greedy) return sample_greedy(device.queue(), args, scratch);
  WH_CUDA(cudaEventSynchronize(copied_));
  fill(args);
  WH_CUDA(
      cudaMemcpyAsync(rows_.as<void>(), host_.as<void>(), bytes, cudaMemcpyHostToDevice, device.stream()));
  WH_CUDA(cudaEventRecord(copied_, device.stream()));
  scratch.chunk = kChunk * ceil_div(args.vocab_used, kChunk * kMaxChunks);
  scratch.chunks = ceil_div(args.vocab_used, scratch.chunk);
  make_chunks(rows, scratch.chunks);
  scratch.chunk_best = chunk_best_.as<unsigned long long>();
  scratch.chunk_mass = chunk_mass_.as<double>();
  scratch.wide = wide_.as<int32_t>();
  scratch.saved = saved_.as<float>();
  sample_top(device.queue(), args, rows_.as<DeviceRow>(), scratch);
  if (std::any_of(args.rows, args.rows + rows, may_be_wide))
    sample_rows(device.queue(), args, rows_.as<DeviceRow>(), scratch);
}

size_t Sampler::lay_out(const SampleArgs& args, size_t& saved) const {
  const auto rows = static_cast<size_t>(args.logits.rows);
  Lists lists(nullptr, nullptr, align_up(rows * sizeof(DeviceRow), size_t{16}));
  for (size_t r = 0; r < rows; ++r) {
    const DeviceRow row = device_row(args.rows[r], args.vocab_used, lists);
    saved += static_cast<size_t>(row.row.num_seen) + static_cast<size_t>(row.row.num_bias);
  }
  return lists.bytes();
}

void Sampler::fill(const SampleArgs& args) {
  const auto rows = static_cast<size_t>(args.logits.rows);
  auto* host = host_.as<std::byte>();
  Lists lists(host, rows_.as<std::byte>(), align_up(rows * sizeof(DeviceRow), size_t{16}));
  int64_t saved = 0;
  for (size_t r = 0; r < rows; ++r) {
    DeviceRow row = device_row(args.rows[r], args.vocab_used, lists);
    row.saved_offset = saved;
    saved += int64_t{row.row.num_seen} + row.row.num_bias;
    std::memcpy(host + r * sizeof(DeviceRow), &row, sizeof(row));
  }
}

// Grows by doubling: after the first steps nothing is allocated.
void Sampler::make_room(int32_t rows, size_t bytes, size_t saved) {
  if (copied_ == nullptr) WH_CUDA(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming));
  if (rows > max_rows_) {
    max_rows_ = std::max(rows, 2 * max_rows_);
    best_ = Device::allocate(static_cast<size_t>(max_rows_) * kGreedyParts * sizeof(unsigned long long));
    counters_ = Device::allocate(static_cast<size_t>(max_rows_) * sizeof(int32_t));
  }
  if (bytes > host_.bytes()) {
    WH_CUDA(cudaEventSynchronize(copied_));
    const size_t size = std::max({bytes, 2 * host_.bytes(), size_t{64} << 10});
    host_ = Device::allocate_pinned(size);
    rows_ = Device::allocate(size);
  }
  if (saved * sizeof(float) > saved_.bytes() || saved_.bytes() == 0)
    saved_ = Device::allocate(std::max({saved * sizeof(float), 2 * saved_.bytes(), size_t{64} << 10}));
}

void Sampler::make_chunks(int32_t rows, int32_t chunks) {
  const size_t count = static_cast<size_t>(rows) * static_cast<size_t>(chunks);
  if (static_cast<size_t>(rows) * sizeof(int32_t) > wide_.bytes())
    wide_ = Device::allocate(static_cast<size_t>(max_rows_) * sizeof(int32_t));
  if (count * sizeof(double) <= chunk_mass_.bytes()) return;
  const size_t size = std::max(count * sizeof(double), 2 * chunk_mass_.bytes());
  chunk_best_ = Device::allocate(size);
  chunk_mass_ = Device::allocate(size);
}

}  // namespace whippet::cuda
