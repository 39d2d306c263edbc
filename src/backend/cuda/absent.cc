#include "backend/cuda/cuda_backend.h"

namespace whippet::cuda {

Result<std::unique_ptr<Backend>> make_cuda_backend(const CudaOptions&) {
  return make_error(Code::kUnsupported, "this binary is built without CUDA: use the device cpu");
}

}  // namespace whippet::cuda
