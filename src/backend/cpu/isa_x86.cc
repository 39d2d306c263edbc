#include "backend/cpu/isa.h"

namespace whippet::cpu {

namespace avx512 {
extern const Kernels kKernels;
}
namespace avx2 {
extern const Kernels kKernels;
}
namespace portable {
extern const Kernels kKernels;
}

std::vector<const Kernels*> supported_kernels() {
  __builtin_cpu_init();  // asks cpuid, and xgetbv whether the system saves the registers
  std::vector<const Kernels*> all;
  const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    all.push_back(&avx512::kKernels);
  if (has_avx2) all.push_back(&avx2::kKernels);
  all.push_back(&portable::kKernels);
  return all;
}

}  // namespace whippet::cpu
