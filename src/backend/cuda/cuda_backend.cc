#include "backend/cuda/cuda_backend.h"

#include <utility>

#include "backend/cuda/cuda_device_backend.h"
#include "backend/cuda/pack.h"
#include "base/log.h"

namespace whippet::cuda {
namespace {

constexpr size_t kPartialBytes = size_t{16} << 20;
constexpr int32_t kAttentionCounters = 1 << 16;
constexpr size_t kMaxPending = 4096;
constexpr size_t kKernelCopy = size_t{64} << 10;

void check_same_shape(ConstMat a, ConstMat b) {
  WH_CHECK(a.rows == b.rows && a.cols == b.cols && a.dtype == b.dtype, "{} [{}, {}] and {} [{}, {}]",
           dtype_name(a.dtype), a.rows, a.cols, dtype_name(b.dtype), b.rows, b.cols);
}

}  // namespace

Result<std::unique_ptr<Backend>> make_cuda_backend(const CudaOptions& options) {
  WH_ASSIGN(Device device, Device::open());
  std::unique_ptr<Blas> blas;
  if (!options.deterministic) {
    auto opened = Blas::open();
    if (opened.ok()) {
      blas = std::move(opened).value();
    } else {
      log_warning("prompts will be slow: {}", opened.error().message);
    }
  }
  return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(std::move(device), std::move(blas),
                                                                options.activations, options.deterministic));
}

CudaBackend::CudaBackend(Device device, std::unique_ptr<Blas> blas, DType activations, bool deterministic)
    : device_(std::move(device)),
      activations_(activations),
      deterministic_(deterministic),
      linear_(std::move(blas), activations, deterministic),
      partial_(Device::allocate(kPartialBytes)),
      counters_(Device::allocate(kAttentionCounters * sizeof(int32_t))) {
  attention_scratch_ = {.partial = partial_.as<float>(),
                        .floats = kPartialBytes / sizeof(float),
                        .counters = counters_.as<int32_t>(),
                        .num_counters = kAttentionCounters,
                        .may_split = !deterministic};
  pending_.reserve(kMaxPending);
  changed_caches_.reserve(kMaxPending);
}

CudaBackend::~CudaBackend() { cudaStreamSynchronize(device_.stream()); }

std::string CudaBackend::description() const {
  return fmt::format("cuda ({}, {}{})", device_.name(), dtype_name(activations_),
                     deterministic_ ? ", deterministic" : "");
}

std::optional<DeviceMemory> CudaBackend::memory() const {
  size_t available = 0, total = 0;
  WH_CUDA(cudaMemGetInfo(&available, &total));
  return DeviceMemory{total, available};
}

void CudaBackend::copy_to_device(void* to, const void* from, size_t bytes) {
  flush();
  device_.copy_in(to, from, bytes);
  if (bytes > 0) changed_caches_.clear();
}

void CudaBackend::copy_to_host(void* to, const void* from, size_t bytes) {
  flush();
  device_.copy_out(to, from, bytes);
  changed_caches_.clear();
}

void CudaBackend::start_copy_to_host(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  flush();
  if (bytes % 4 == 0 && bytes <= kKernelCopy) {  // quicker than the copy engine
    return copy_words(device_.queue(), to, from, static_cast<int32_t>(bytes / 4));
  }
  WH_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device_.stream()));
}

uint64_t CudaBackend::mark() {
  flush();
  return marks_.record(device_.stream());
}

void CudaBackend::wait(uint64_t mark) { marks_.wait(mark); }

void CudaBackend::run_step(uint64_t key, const std::function<void()>& body) {
  flush();
  graphs_.run(device_.stream(), key, [&] {
    body();
    flush();
  });
}

Result<LinearWeight> CudaBackend::pack(const CanonicalLinear& weight, ComputeType compute) {
  WH_ASSIGN(LinearWeight packed, pack_linear(weight, compute, activations_));
  linear_.prepare(packed);
  return packed;
}

void CudaBackend::fill_inputs(const BatchView& batch, const int32_t* drawn, int32_t* token_ids) {
  put(FillOp{batch, drawn, token_ids});
}

void CudaBackend::embed(const int32_t* ids, const LinearWeight& table, Mat out) {
  WH_CHECK_EQ(out.cols, table.in);
  put(EmbedOp{ids, &table, out});
}

void CudaBackend::rms_norm(ConstMat x, const float* weight, int32_t dim, float eps, Mat out) {
  check_same_shape(x, out);
  WH_CHECK(dim > 0 && x.cols % dim == 0, "{} columns in pieces of {}", x.cols, dim);
  put(NormOp{x, weight, dim, eps, out});
}

void CudaBackend::linear(ConstMat x, const LinearWeight& w, Mat out) {
  WH_CHECK(x.cols == w.in && out.cols == w.out && x.rows == out.rows, "[{}, {}] by [{}, {}] into [{}, {}]",
           x.rows, x.cols, w.out, w.in, out.rows, out.cols);
  WH_CHECK(x.dtype == activations_ && (out.dtype == x.dtype || out.dtype == DType::kF32), "{} into {}",
           dtype_name(x.dtype), dtype_name(out.dtype));
  put(LinearOp{x, &w, out});
}

void CudaBackend::rope_angles(const BatchView& batch, Mat cos_sin) { put(AnglesOp{batch, cos_sin}); }

void CudaBackend::rope(Mat x, int32_t head_dim, ConstMat cos_sin) {
  WH_CHECK(head_dim > 0 && head_dim % 2 == 0 && x.cols % head_dim == 0, "{} columns in heads of {}", x.cols,
           head_dim);
  WH_CHECK(cos_sin.rows >= x.rows && cos_sin.cols == head_dim, "angles [{}, {}]", cos_sin.rows, cos_sin.cols);
  put(RopeOp{x, head_dim, cos_sin});
}

void CudaBackend::store_kv(const BatchView& batch, ConstMat k, ConstMat v, const KvCacheView& cache) {
  check_same_shape(k, v);
  WH_CHECK_EQ(k.cols, cache.num_kv_heads * cache.head_dim);
  put(StoreOp{batch, k, v, cache});
}

void CudaBackend::attention(const BatchView& batch, const AttentionArgs& args) {
  put(AttentionOp{batch, args});
}

void CudaBackend::silu_mul(ConstMat gate_up, Mat out) {
  WH_CHECK(gate_up.rows == out.rows && gate_up.cols == 2 * out.cols, "[{}, {}] into [{}, {}]", gate_up.rows,
           gate_up.cols, out.rows, out.cols);
  put(SiluOp{gate_up, out});
}

void CudaBackend::add(ConstMat y, Mat x) {
  check_same_shape(y, x);
  put(AddOp{y, x});
}

void CudaBackend::gather_rows(ConstMat x, const int32_t* rows, Mat out) {
  WH_CHECK(x.cols == out.cols && x.dtype == out.dtype, "{} columns into {}", x.cols, out.cols);
  put(GatherOp{x, rows, out});
}

void CudaBackend::sample(const SampleArgs& args) {
  WH_CHECK(args.vocab_used > 0 && args.vocab_used <= args.logits.cols, "{} of {}", args.vocab_used,
           args.logits.cols);
  flush();
  sampler_.run(device_, args);
}

void CudaBackend::flush() {
  for (size_t i = 0; i < pending_.size();) {
    const size_t fused = run_fused(i);
    if (fused == 0) run(pending_[i]);
    i += fused == 0 ? 1 : fused;
  }
  pending_.clear();
}

}  // namespace whippet::cuda
