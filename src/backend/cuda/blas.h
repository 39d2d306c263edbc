// Products of many rows, by cuBLASLt, which is looked for when the backend starts (the binary does not need
// it to run: own kernels take over, slower on prompts).
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "base/error.h"
#include "tensor/buffer.h"
#include "tensor/mat.h"

namespace whippet::cuda {

class Blas {
 public:
  // kUnsupported says what is missing and what to install.
  static Result<std::unique_ptr<Blas>> open();
  ~Blas();

  // out = x w^T (+ bias). x [rows, in], w [out.cols, in] of x's type, bias [out.cols] of out's type or
  // nullptr, out of x's type or fp32. False where the library has no kernel for the shape; nothing is done
  // then.
  bool product(cudaStream_t stream, ConstMat x, ConstMat w, const void* bias, Mat out);

 private:
  struct Impl;
  explicit Blas(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace whippet::cuda
