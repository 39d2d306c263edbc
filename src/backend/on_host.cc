#include "backend/on_host.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace whippet::testing {
namespace {

// A plain array on the device.
class Array {
 public:
  Array(Backend& device, const void* host, size_t bytes)
      : device_(device), bytes_(host == nullptr ? 0 : bytes) {
    if (bytes_ == 0) return;
    buffer_ = device.allocate(bytes_);
    device.copy_to_device(buffer_.as<void>(), host, bytes_);
  }
  template <class T>
  T* as() const {
    return buffer_.as<T>();
  }
  void copy_back(void* host) const {
    if (bytes_ > 0) device_.copy_to_host(host, buffer_.as<void>(), bytes_);
  }

 private:
  Backend& device_;
  size_t bytes_;
  Buffer buffer_;
};

// A matrix on the device, the gaps between its rows and their guards included.
class Matrix {
 public:
  Matrix(Backend& device, ConstMat host, DType type) : device_(device), host_(host), type_(type) {
    const std::vector<std::byte> bytes = converted();
    buffer_ = device.allocate(bytes.size());
    device.copy_to_device(buffer_.as<void>(), bytes.data(), bytes.size());
  }
  Matrix(Backend& device, ConstMat host) : Matrix(device, host, device.activation_type()) {}

  Mat mat() const { return {buffer_.as<void>(), type_, host_.rows, host_.cols, host_.stride}; }

  void copy_back(Mat host) const {
    std::vector<std::byte> bytes(elements() * dtype_size(type_));
    device_.copy_to_host(bytes.data(), buffer_.as<void>(), bytes.size());
    if (type_ == DType::kF32) {
      std::memcpy(host.data, bytes.data(), bytes.size());
      return;
    }
    const auto* halves = reinterpret_cast<const uint16_t*>(bytes.data());
    for (int32_t r = 0; r < host.rows; ++r) {
      for (int32_t c = 0; c < host.cols; ++c) {
        const uint16_t half = halves[r * host.stride + c];
        host.row<float>(r)[c] = type_ == DType::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
      }
    }
  }

 private:
  size_t elements() const {
    return host_.rows == 0 ? 0 : static_cast<size_t>((host_.rows - 1) * host_.stride + host_.cols);
  }
  std::vector<std::byte> converted() const {
    std::vector<std::byte> bytes(elements() * dtype_size(type_));
    if (type_ == DType::kF32) {
      if (!bytes.empty()) std::memcpy(bytes.data(), host_.data, bytes.size());
      return bytes;
    }
    const auto* from = static_cast<const float*>(host_.data);
    auto* halves = reinterpret_cast<uint16_t*>(bytes.data());
    for (size_t i = 0; i < elements(); ++i)
      halves[i] = type_ == DType::kF16 ? f32_to_f16(from[i]) : f32_to_bf16(from[i]);
    return bytes;
  }

  Backend& device_;
  ConstMat host_;
  DType type_;
  Buffer buffer_;
};

// A batch whose arrays are on the device.
struct Batch {
  Array token_ids, sources, positions, seq_of_token, row_begin, kv_len, block_table, inv_freq;
  BatchView view;

  Batch(Backend& device, const BatchView& host, int32_t num_frequencies)
      : token_ids(device, host.token_ids, words(host.num_tokens)),
        sources(device, host.sources, words(host.num_tokens)),
        positions(device, host.positions, words(host.num_tokens)),
        seq_of_token(device, host.seq_of_token, words(host.num_tokens)),
        row_begin(device, host.row_begin, words(host.num_seqs + 1)),
        kv_len(device, host.kv_len, words(host.num_seqs)),
        block_table(device, host.block_table,
                    words(host.num_seqs) * static_cast<size_t>(host.max_blocks_per_seq)),
        inv_freq(device, host.inv_freq, words(host.num_seqs) * static_cast<size_t>(num_frequencies)),
        view(host) {
    view.token_ids = token_ids.as<int32_t>();
    view.sources = sources.as<int32_t>();
    view.positions = positions.as<int32_t>();
    view.seq_of_token = seq_of_token.as<int32_t>();
    view.row_begin = row_begin.as<int32_t>();
    view.kv_len = kv_len.as<int32_t>();
    view.block_table = block_table.as<int32_t>();
    view.inv_freq = inv_freq.as<float>();
  }
  static size_t words(int32_t count) { return static_cast<size_t>(count) * 4; }
};

struct Cache {
  Array k, v;
  KvCacheView view;

  Cache(Backend& device, const KvCacheView& host)
      : k(device, host.k, bytes(host)), v(device, host.v, bytes(host)), view(host) {
    view.k = k.as<void>();
    view.v = v.as<void>();
  }
  static size_t bytes(const KvCacheView& cache) {
    return static_cast<size_t>(cache.num_blocks) * static_cast<size_t>(cache.num_kv_heads) *
           static_cast<size_t>(cache.block_size) * static_cast<size_t>(cache.head_dim) *
           dtype_size(cache.dtype);
  }
};

}  // namespace

void OnHost::copy_to_device(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
void OnHost::copy_to_host(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void OnHost::fill_inputs(const BatchView& batch, const int32_t* drawn, int32_t* token_ids) {
  const Batch on_device(*device_, batch, 0);
  int32_t most = 0;  // of what is drawn
  for (int32_t r = 0; r < batch.num_tokens; ++r) most = std::max(most, batch.sources[r] + 1);
  const Array from(*device_, drawn, static_cast<size_t>(most) * 4);
  const Array to(*device_, token_ids, static_cast<size_t>(batch.num_tokens) * 4);
  device_->fill_inputs(on_device.view, from.as<int32_t>(), to.as<int32_t>());
  to.copy_back(token_ids);
}

void OnHost::embed(const int32_t* ids, const LinearWeight& table, Mat out) {
  const Array on_device(*device_, ids, static_cast<size_t>(out.rows) * 4);
  const Matrix to(*device_, out);
  device_->embed(on_device.as<int32_t>(), table, to.mat());
  to.copy_back(out);
}

void OnHost::rms_norm(ConstMat x, const float* weight, int32_t dim, float eps, Mat out) {
  const Array weights(*device_, weight, static_cast<size_t>(dim) * 4);
  const Matrix to(*device_, out);
  if (x.data == out.data) {
    device_->rms_norm(to.mat(), weights.as<float>(), dim, eps, to.mat());
    return to.copy_back(out);
  }
  const Matrix from(*device_, x);
  device_->rms_norm(from.mat(), weights.as<float>(), dim, eps, to.mat());
  to.copy_back(out);
}

void OnHost::linear(ConstMat x, const LinearWeight& w, Mat out) {
  const Matrix from(*device_, x), to(*device_, out);
  device_->linear(from.mat(), w, to.mat());
  to.copy_back(out);
}

void OnHost::rope_angles(const BatchView& batch, Mat cos_sin) {
  const Batch on_device(*device_, batch, cos_sin.cols / 2);
  const Matrix to(*device_, cos_sin, DType::kF32);
  device_->rope_angles(on_device.view, to.mat());
  to.copy_back(cos_sin);
}

void OnHost::rope(Mat x, int32_t head_dim, ConstMat cos_sin) {
  const Matrix angles(*device_, cos_sin, DType::kF32), to(*device_, x);
  device_->rope(to.mat(), head_dim, angles.mat());
  to.copy_back(x);
}

void OnHost::store_kv(const BatchView& batch, ConstMat k, ConstMat v, const KvCacheView& cache) {
  const Batch on_device(*device_, batch, 0);
  const Matrix keys(*device_, k), values(*device_, v);
  const Cache to(*device_, cache);
  device_->store_kv(on_device.view, keys.mat(), values.mat(), to.view);
  to.k.copy_back(cache.k);
  to.v.copy_back(cache.v);
}

void OnHost::attention(const BatchView& batch, const AttentionArgs& args) {
  const Batch on_device(*device_, batch, 0);
  const Matrix q(*device_, args.q), to(*device_, args.out);
  const Cache cache(*device_, args.cache);
  const Array heads(*device_, args.kv_head_of_q, static_cast<size_t>(args.num_q_heads) * 4);
  AttentionArgs there = args;
  there.q = q.mat();
  there.out = to.mat();
  there.cache = cache.view;
  there.kv_head_of_q = heads.as<int32_t>();
  device_->attention(on_device.view, there);
  to.copy_back(args.out);
}

void OnHost::silu_mul(ConstMat gate_up, Mat out) {
  const Matrix from(*device_, gate_up), to(*device_, out);
  device_->silu_mul(from.mat(), to.mat());
  to.copy_back(out);
}

void OnHost::add(ConstMat y, Mat x) {
  const Matrix from(*device_, y), to(*device_, x);
  device_->add(from.mat(), to.mat());
  to.copy_back(x);
}

void OnHost::gather_rows(ConstMat x, const int32_t* rows, Mat out) {
  const Array which(*device_, rows, static_cast<size_t>(out.rows) * 4);
  const Matrix from(*device_, x), to(*device_, out);
  device_->gather_rows(from.mat(), which.as<int32_t>(), to.mat());
  to.copy_back(out);
}

void OnHost::sample(const SampleArgs& args) {
  const auto rows = static_cast<size_t>(args.logits.rows);
  const size_t tops = rows * static_cast<size_t>(args.max_logprobs);
  const Matrix logits(*device_, args.logits, DType::kF32);
  const Array tokens(*device_, args.tokens, rows * 4), logprobs(*device_, args.logprobs, rows * 4);
  const Array ranks(*device_, args.ranks, rows * 4), top_ids(*device_, args.top_ids, tops * 4);
  const Array top_logprobs(*device_, args.top_logprobs, tops * 4);
  SampleArgs there = args;
  there.logits = logits.mat();
  there.tokens = tokens.as<int32_t>();
  there.logprobs = logprobs.as<float>();
  there.ranks = ranks.as<int32_t>();
  there.top_ids = top_ids.as<int32_t>();
  there.top_logprobs = top_logprobs.as<float>();
  device_->sample(there);
  logits.copy_back(args.logits);
  tokens.copy_back(args.tokens);
  logprobs.copy_back(args.logprobs);
  ranks.copy_back(args.ranks);
  top_ids.copy_back(args.top_ids);
  top_logprobs.copy_back(args.top_logprobs);
}

}  // namespace whippet::testing
