// The CUDA backend. Ops are kept and put on the queue together (op.h), neighbours fused where a kernel can do
// both (fuse.cc); a step of a shape that came before is one graph launch. Engine thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/device.h"
#include "backend/cuda/graphs.h"
#include "backend/cuda/linear.h"
#include "backend/cuda/op.h"
#include "backend/cuda/sampler.h"

namespace whippet::cuda {

class CudaBackend : public Backend {
 public:
  CudaBackend(Device device, std::unique_ptr<Blas> blas, DType activations, bool deterministic);
  ~CudaBackend() override;

  std::string description() const override;
  std::optional<DeviceMemory> memory() const override;
  DType activation_type() const override { return activations_; }
  Buffer allocate(size_t bytes) override { return Device::allocate(bytes); }
  void copy_to_device(void* to, const void* from, size_t bytes) override;
  void copy_to_host(void* to, const void* from, size_t bytes) override;
  Result<LinearWeight> pack(const CanonicalLinear& weight, ComputeType compute) override;

  Buffer allocate_host(size_t bytes) override { return Device::allocate_pinned(bytes); }
  void start_copy_to_host(void* to, const void* from, size_t bytes) override;
  uint64_t mark() override;
  void wait(uint64_t mark) override;
  void run_step(uint64_t key, const std::function<void()>& body) override;

  void fill_inputs(const BatchView& batch, const int32_t* drawn, int32_t* token_ids) override;
  void embed(const int32_t* ids, const LinearWeight& table, Mat out) override;
  void rms_norm(ConstMat x, const float* weight, int32_t dim, float eps, Mat out) override;
  void linear(ConstMat x, const LinearWeight& w, Mat out) override;
  void rope_angles(const BatchView& batch, Mat cos_sin) override;
  void rope(Mat x, int32_t head_dim, ConstMat cos_sin) override;
  void store_kv(const BatchView& batch, ConstMat k, ConstMat v, const KvCacheView& cache) override;
  void attention(const BatchView& batch, const AttentionArgs& args) override;
  void silu_mul(ConstMat gate_up, Mat out) override;
  void add(ConstMat y, Mat x) override;
  void gather_rows(ConstMat x, const int32_t* rows, Mat out) override;
  void sample(const SampleArgs& args) override;

 private:
  void put(Op op) { pending_.push_back(std::move(op)); }
  // Puts what is pending on the queue.
  void flush();
  void run(const Op& op);
  // Runs pending ops from `first` on as one kernel; the number of ops, 0 where the first stands alone.
  size_t run_fused(size_t first);
  bool is_dead(ConstMat m, size_t from) const;
  size_t fuse_linear(size_t first);
  size_t fuse_attention(size_t first);
  size_t fuse_add(size_t first);
  template <class T>
  const T* pending(size_t index) const {
    return index < pending_.size() ? std::get_if<T>(&pending_[index]) : nullptr;
  }

  Device device_;
  DType activations_;
  bool deterministic_;
  Linear linear_;
  Sampler sampler_;
  Buffer partial_, counters_;
  AttentionScratch attention_scratch_;
  std::vector<Op> pending_;
  std::vector<const void*> changed_caches_;  // since the stream last waited for a copy
  Marks marks_;
  Graphs graphs_;
};

}  // namespace whippet::cuda
