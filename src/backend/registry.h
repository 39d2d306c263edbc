// Which backends this binary has, by name. Used by the API and the command line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace whippet {

struct BackendOptions {
  int32_t num_threads = 0;  // of the CPU backend, the caller's included; 0: one a physical core it may use
  std::string isa;          // of the CPU backend: one of supported_isas(); empty: the best
  DType activations = DType::kF32;  // of the CUDA backend: what is kept between ops
  bool deterministic = false;       // of the CUDA backend: results do not depend on the batch
};

// "cpu", "cuda", or "auto" (cuda where it works, else cpu). kUnsupported says why there is none.
Result<std::unique_ptr<Backend>> make_backend(std::string_view name, const BackendOptions& options);

// The instruction sets that both this binary and this machine have, best first: "avx512", "avx2", "portable".
std::vector<std::string> supported_isas();

}  // namespace whippet
