// The CUDA backend, for the registry.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace whippet::cuda {

// kUnsupported where the binary or the machine has no CUDA.
Result<std::unique_ptr<Backend>> make_cuda_backend();

}  // namespace whippet::cuda
