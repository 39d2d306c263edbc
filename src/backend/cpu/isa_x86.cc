#include <cpuid.h>

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

// __builtin_cpu_supports knows "f16c" in g++ only. (Intel SDM, CPUID leaf 1: ECX bit 29)
static bool has_f16c() {
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1u << 29)) != 0;
}

std::vector<const Kernels*> supported_kernels() {
  __builtin_cpu_init();  // asks cpuid, and xgetbv whether the system saves the registers
  std::vector<const Kernels*> all;
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    all.push_back(&avx512::kKernels);
  if (has_avx2) all.push_back(&avx2::kKernels);
  all.push_back(&portable::kKernels);
  return all;
}

}  // namespace whippet::cpu
