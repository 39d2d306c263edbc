// For op tests: hands matrices in host memory to a backend whose memory is elsewhere. Every op copies what it
// reads there and what it wrote back, in the type that the backend keeps activations in. Tests only.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "backend/backend.h"

namespace whippet::testing {

class OnHost : public Backend {
 public:
  explicit OnHost(std::unique_ptr<Backend> device) : device_(std::move(device)) {}

  std::string description() const override { return device_->description(); }
  DType activation_type() const override { return DType::kF32; }
  Buffer allocate(size_t bytes) override { return Buffer::host(bytes); }
  void copy_to_device(void* to, const void* from, size_t bytes) override;
  void copy_to_host(void* to, const void* from, size_t bytes) override;
  Result<LinearWeight> pack(const CanonicalLinear& weight, ComputeType compute) override {
    return device_->pack(weight, compute);
  }

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
  std::unique_ptr<Backend> device_;
};

}  // namespace whippet::testing
