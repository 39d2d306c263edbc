// The CPU backend: fp32 activations, weights as they came, vectorised for what the machine has.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"

namespace whippet::cpu {

// num_threads counts the caller's (0: one a physical core that this process may use). isa: one of
// supported_kernels() by name, empty for the best; kInvalidArgument lists them.
Result<std::unique_ptr<Backend>> make_cpu_backend(int32_t num_threads, const std::string& isa);

}  // namespace whippet::cpu
