#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "backend/cpu/cores.h"
#include "backend/cpu/for_rows.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/sampler.h"

namespace whippet::cpu {
namespace {

constexpr int32_t kMaxThreads = 1024;
constexpr size_t kSplitStateBytes = size_t{4} << 20;

void check_f32(ConstMat m) { WH_CHECK(m.dtype == DType::kF32, "{}", dtype_name(m.dtype)); }
void check_same_shape(ConstMat a, ConstMat b) {
  check_f32(a);
  check_f32(b);
  WH_CHECK(a.rows == b.rows && a.cols == b.cols, "[{}, {}] and [{}, {}]", a.rows, a.cols, b.rows, b.cols);
}

}  // namespace

Result<std::unique_ptr<Backend>> make_cpu_backend(int32_t num_threads, const std::string& isa) {
  if (num_threads < 0 || num_threads > kMaxThreads)
    return make_error(Code::kInvalidArgument, "{} threads: expected 0 (one a core) to {}", num_threads,
                      kMaxThreads);
  const int32_t cores = usable_cores();
  if (num_threads == 0) num_threads = std::min(cores, kMaxThreads);
  std::string known;
  for (const Kernels* kernels : supported_kernels()) {
    if (isa.empty() || isa == kernels->name)
      return std::unique_ptr<Backend>(
          std::make_unique<CpuBackend>(*kernels, num_threads, num_threads <= cores));
    known += (known.empty() ? "" : ", ") + std::string(kernels->name);
  }
  return make_error(Code::kInvalidArgument, "instruction set '{}' is not available: this machine has {}", isa,
                    known);
}

CpuBackend::CpuBackend(const Kernels& kernels, int32_t num_threads, bool spin)
    : kernels_(kernels), pool_(num_threads, spin), scratch_(pool_.num_threads()) {
  for (WorkerScratch& scratch : scratch_) {
    scratch.kernel = Buffer::host(sizeof(float) * std::max(kLinearScratch, kAttentionScratch));
    scratch.states = Buffer::host(sizeof(float) * 2 * kTileQueries * attention_state_size(kMaxHeadDim));
  }
  split_states_ = Buffer::host(kSplitStateBytes);
}

std::string CpuBackend::description() const {
  return fmt::format("cpu ({}, {} thread{})", kernels_.name, pool_.num_threads(),
                     pool_.num_threads() == 1 ? "" : "s");
}

void CpuBackend::copy_to_device(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
void CpuBackend::copy_to_host(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void CpuBackend::fill_inputs(const BatchView& batch, const int32_t* drawn, int32_t* token_ids) {
  for (int32_t r = 0; r < batch.num_tokens; ++r)
    if (batch.sources[r] >= 0) token_ids[r] = std::max(drawn[batch.sources[r]], 0);
}

void CpuBackend::rms_norm(ConstMat x, const float* weight, int32_t dim, float eps, Mat out) {
  check_same_shape(x, out);
  WH_CHECK(dim > 0 && x.cols % dim == 0, "{} columns in pieces of {}", x.cols, dim);
  for_rows(x.rows, x.cols, [&](int32_t begin, int32_t end) {
    for (int32_t r = begin; r < end; ++r)
      for (int32_t c = 0; c < x.cols; c += dim)
        kernels_.rms_norm(x.row<float>(r) + c, weight, dim, eps, out.row<float>(r) + c);
  });
}

void CpuBackend::rope_angles(const BatchView& batch, Mat cos_sin) {
  check_f32(cos_sin);
  const int32_t half = cos_sin.cols / 2;
  for_rows(batch.num_tokens, cos_sin.cols * int64_t{16}, [&](int32_t begin, int32_t end) {
    for (int32_t r = begin; r < end; ++r) {
      const float* inv_freq = batch.inv_freq + static_cast<int64_t>(batch.seq_of_token[r]) * half;
      float* row = cos_sin.row<float>(r);
      for (int32_t i = 0; i < half; ++i) {
        // The angle is rounded to fp32 because that is what models were trained with; its cosine is exact.
        const double angle = static_cast<float>(batch.positions[r]) * inv_freq[i];
        row[i] = static_cast<float>(std::cos(angle));
        row[half + i] = static_cast<float>(std::sin(angle));
      }
    }
  });
}

void CpuBackend::rope(Mat x, int32_t head_dim, ConstMat cos_sin) {
  check_f32(x);
  check_f32(cos_sin);
  WH_CHECK(head_dim > 0 && head_dim % 2 == 0 && x.cols % head_dim == 0, "{} columns in heads of {}", x.cols,
           head_dim);
  WH_CHECK(cos_sin.rows >= x.rows && cos_sin.cols == head_dim, "angles [{}, {}]", cos_sin.rows, cos_sin.cols);
  for_rows(x.rows, x.cols, [&](int32_t begin, int32_t end) {
    for (int32_t r = begin; r < end; ++r)
      for (int32_t c = 0; c < x.cols; c += head_dim)
        kernels_.rope(x.row<float>(r) + c, cos_sin.row<float>(r), head_dim);
  });
}

void CpuBackend::store_kv(const BatchView& batch, ConstMat k, ConstMat v, const KvCacheView& cache) {
  check_same_shape(k, v);
  const int32_t dim = cache.head_dim;
  WH_CHECK_EQ(k.cols, cache.num_kv_heads * dim);
  const auto store = [&](const float* from, void* base, float* scales, int64_t row) {
    const int64_t at = row * dim;
    if (cache.dtype == DType::kI8)
      kernels_.to_i8(from, static_cast<int8_t*>(base) + at, scales + row, dim);
    else if (cache.dtype == DType::kF16)
      kernels_.to_f16(from, static_cast<uint16_t*>(base) + at, dim);
    else if (cache.dtype == DType::kBF16)
      kernels_.to_bf16(from, static_cast<uint16_t*>(base) + at, dim);
    else
      std::memcpy(static_cast<float*>(base) + at, from, sizeof(float) * dim);
  };
  for_rows(batch.num_tokens, k.cols, [&](int32_t begin, int32_t end) {
    for (int32_t r = begin; r < end; ++r) {
      const int32_t position = batch.positions[r];
      const int64_t block =
          batch.block_table[static_cast<int64_t>(batch.seq_of_token[r]) * batch.max_blocks_per_seq +
                            position / cache.block_size];
      WH_CHECK(block >= 0 && block < cache.num_blocks, "block {} of {}", block, cache.num_blocks);
      for (int32_t h = 0; h < cache.num_kv_heads; ++h) {
        const int64_t row = (block * cache.num_kv_heads + h) * cache.block_size + position % cache.block_size;
        store(k.row<float>(r) + h * dim, cache.k, cache.k_scales, row);
        store(v.row<float>(r) + h * dim, cache.v, cache.v_scales, row);
      }
    }
  });
}

void CpuBackend::silu_mul(ConstMat gate_up, Mat out) {
  check_f32(gate_up);
  check_f32(out);
  WH_CHECK(gate_up.rows == out.rows && gate_up.cols == 2 * out.cols, "[{}, {}] into [{}, {}]", gate_up.rows,
           gate_up.cols, out.rows, out.cols);
  for_rows(out.rows, int64_t{4} * out.cols, [&](int32_t begin, int32_t end) {
    for (int32_t r = begin; r < end; ++r)
      kernels_.silu_mul(gate_up.row<float>(r), gate_up.row<float>(r) + out.cols, out.row<float>(r), out.cols);
  });
}

void CpuBackend::add(ConstMat y, Mat x) {
  check_same_shape(y, x);
  for_rows(x.rows, x.cols, [&](int32_t begin, int32_t end) {
    for (int32_t r = begin; r < end; ++r) kernels_.add(y.row<float>(r), x.row<float>(r), x.cols);
  });
}

void CpuBackend::gather_rows(ConstMat x, const int32_t* rows, Mat out) {
  check_f32(x);
  check_f32(out);
  WH_CHECK_EQ(x.cols, out.cols);
  for (int32_t r = 0; r < out.rows; ++r) {
    WH_CHECK(rows[r] >= 0 && rows[r] < x.rows, "row {} of {}", rows[r], x.rows);
    std::memcpy(out.row<float>(r), x.row<float>(rows[r]), sizeof(float) * out.cols);
  }
}

void CpuBackend::make_room_for_sampling(int32_t vocab) {
  if (vocab <= max_vocab_) return;
  max_vocab_ = vocab;
  for (WorkerScratch& scratch : scratch_) {
    scratch.raw.reset(new float[vocab]);
    scratch.weights.reset(new float[vocab]);
    scratch.block_sums.reset(new double[vocab / kExpBlock + 1]);
    scratch.ids.reset(new int32_t[vocab]);
  }
}

void CpuBackend::sample(const SampleArgs& args) {
  check_f32(args.logits);
  WH_CHECK(args.vocab_used > 0 && args.vocab_used <= args.logits.cols, "{} of {}", args.vocab_used,
           args.logits.cols);
  make_room_for_sampling(args.vocab_used);  // only where no weight of that size was packed: in tests
  pool_.run(args.logits.rows,
            [&](int32_t r, int32_t worker) { sample_row(kernels_, args, r, scratch_[worker]); });
}

}  // namespace whippet::cpu
