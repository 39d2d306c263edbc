// What the tests of CUDA with activations of 16 bits share: the backends, values that the type can hold, and
// matrices that stay on the device. Tests only.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backend/on_host.h"
#include "backend/op_testing.h"

namespace whippet::testing {

inline std::unique_ptr<Backend> cuda_backend(DType activations, bool deterministic) {
  BackendOptions options;
  options.activations = activations;
  options.deterministic = deterministic;
  auto made = make_backend("cuda", options);
  return made.ok() ? std::move(made).value() : nullptr;
}

// Why there is no device; empty where there is one.
inline std::string why_no_cuda() {
  const auto made = make_backend("cuda", {});
  return made.ok() ? "" : made.error().message;
}

// Activations of 16 bits; whether rows are summed in one order whatever the batch.
class CudaHalf : public ::testing::TestWithParam<std::tuple<DType, bool>> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
    device_ = cuda_backend(dtype(), deterministic());
    on_host_ = std::make_unique<OnHost>(cuda_backend(dtype(), deterministic()));
  }
  static DType dtype() { return std::get<0>(GetParam()); }
  static bool deterministic() { return std::get<1>(GetParam()); }
  static CanonicalLinear::Codes codes() {
    return dtype() == DType::kF16 ? CanonicalLinear::Codes::kF16 : CanonicalLinear::Codes::kBF16;
  }
  static double unit() { return dtype() == DType::kF16 ? 0x1p-11 : 0x1p-8; }

  static float rounded(float x) {
    return dtype() == DType::kF16 ? f16_to_f32(f32_to_f16(x)) : bf16_to_f32(f32_to_bf16(x));
  }
  // Values that the type can hold.
  TestMat random_mat(int32_t rows, int32_t cols, int32_t gap = 0, float scale = 1) {
    TestMat made = TestMat::random(random_, rows, cols, gap, scale);
    for (int32_t r = 0; r < rows; ++r)
      for (int32_t c = 0; c < cols; ++c) made.at(r, c) = rounded(made.at(r, c));
    return made;
  }

  std::unique_ptr<Backend> device_, on_host_;
  Random random_{5};
};

// What suites of CudaHalf are instantiated with: both types, each with and without one order of summation.
inline auto half_types() {
  return ::testing::Combine(::testing::Values(DType::kBF16, DType::kF16), ::testing::Bool());
}
inline std::string half_name(const ::testing::TestParamInfo<CudaHalf::ParamType>& each) {
  return std::string(dtype_name(std::get<0>(each.param))) + (std::get<1>(each.param) ? "_deterministic" : "");
}

// Matrices on the device, for ops that must not be looked at between.
class OnDevice {
 public:
  OnDevice(Backend& backend, TestMat& from) : backend_(backend), rows_(from.rows()), cols_(from.cols()) {
    std::vector<uint16_t> halves;
    const bool f16 = backend.activation_type() == DType::kF16;
    for (int32_t r = 0; r < rows_; ++r)
      for (int32_t c = 0; c < cols_; ++c)
        halves.push_back(f16 ? f32_to_f16(from.at(r, c)) : f32_to_bf16(from.at(r, c)));
    buffer_ = backend.allocate(halves.size() * 2);
    backend.copy_to_device(buffer_.as<void>(), halves.data(), halves.size() * 2);
  }
  Mat mat() const { return buffer_.mat(backend_.activation_type(), rows_, cols_); }
  TestMat read() const {
    std::vector<uint16_t> halves(static_cast<size_t>(rows_ * cols_));
    backend_.copy_to_host(halves.data(), buffer_.as<void>(), halves.size() * 2);
    TestMat out(rows_, cols_);
    for (int32_t r = 0; r < rows_; ++r)
      for (int32_t c = 0; c < cols_; ++c) {
        const uint16_t half = halves[static_cast<size_t>(r * cols_ + c)];
        out.at(r, c) = backend_.activation_type() == DType::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
      }
    return out;
  }

 private:
  Backend& backend_;
  int32_t rows_, cols_;
  Buffer buffer_;
};

}  // namespace whippet::testing
