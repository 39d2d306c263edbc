#include "backend/registry.h"

#include <utility>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cuda/cuda_backend.h"
#include "base/log.h"

namespace whippet {

Result<std::unique_ptr<Backend>> make_backend(std::string_view name, const BackendOptions& options) {
  if (name == "cpu") return cpu::make_cpu_backend(options.num_threads, options.isa);
  const cuda::CudaOptions cuda_options{.activations = options.activations,
                                       .deterministic = options.deterministic};
  if (name == "cuda") return cuda::make_cuda_backend(cuda_options);
  if (name == "auto") {
    auto made = cuda::make_cuda_backend(cuda_options);
    if (made.ok()) return made;
    log_debug("using the CPU: {}", made.error().message);
    return cpu::make_cpu_backend(options.num_threads, options.isa);
  }
  return make_error(Code::kInvalidArgument, "unknown device '{}': expected cpu, cuda or auto", name);
}

std::vector<std::string> supported_isas() {
  std::vector<std::string> names;
  for (const cpu::Kernels* kernels : cpu::supported_kernels()) names.emplace_back(kernels->name);
  return names;
}

}  // namespace whippet
