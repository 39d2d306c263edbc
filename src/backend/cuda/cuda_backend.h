// The CUDA backend, for the registry.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace whippet::cuda {

struct CudaOptions {
  DType activations = DType::kF32;
  bool deterministic = false;  // a row's results do not depend on the batch that it is in
};

// kUnsupported where the binary or the machine has no CUDA.
Result<std::unique_ptr<Backend>> make_cuda_backend(const CudaOptions& options);

}  // namespace whippet::cuda
