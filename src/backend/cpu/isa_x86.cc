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
// Sets that differ from the ones above in a few kernels only.
namespace avx512_bf16 {
extern const int32_t kPairPanelsAtOnce;
void linear_pairs(const PairTask& task);
double pair_burst(int64_t rounds, float* sink);
}  // namespace avx512_bf16
namespace avx512_vnni {
extern const DotKernels kDotKernels;
}
namespace avx2_vnni {
extern const DotKernels kDotKernels;
}

namespace {

struct Features {
  bool avx2 = false, avx2_vnni = false, avx512 = false, avx512_vnni = false, avx512_bf16 = false;
};

// __builtin_cpu_supports knows "f16c" and "avxvnni" in some compilers only. (Intel SDM, CPUID: leaf 1, ECX
// bit 29; leaf 7.1, EAX bit 4)
bool has_f16c() {
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1u << 29)) != 0;
}
bool has_avx_vnni() {
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 4)) != 0;
}

Features find_features() {
  __builtin_cpu_init();  // asks cpuid, and xgetbv whether the system saves the registers
  Features has;
  has.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  has.avx2_vnni = has.avx2 && has_avx_vnni();
  has.avx512 = has.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  has.avx512_vnni = has.avx512 && __builtin_cpu_supports("avx512vnni");
  has.avx512_bf16 = has.avx512_vnni && __builtin_cpu_supports("avx512bf16");
  return has;
}

Kernels with_dots(Kernels base, const char* name, const DotKernels& dots) {
  base.name = name;
  base.dots = dots;
  return base;
}

Kernels with_pairs(Kernels base) {
  base.name = "avx512_bf16";
  base.linear_pairs = avx512_bf16::linear_pairs;
  base.pair_panels = avx512_bf16::kPairPanelsAtOnce;
  base.pair_burst = avx512_bf16::pair_burst;
  return base;
}

}  // namespace

std::vector<const Kernels*> supported_kernels() {
  static const Features has = find_features();
  static const Kernels avx512_vnni = with_dots(avx512::kKernels, "avx512_vnni", avx512_vnni::kDotKernels);
  static const Kernels avx512_bf16 = with_pairs(avx512_vnni);
  static const Kernels avx2_vnni = with_dots(avx2::kKernels, "avx2_vnni", avx2_vnni::kDotKernels);
  std::vector<const Kernels*> all;
  if (has.avx512_bf16) all.push_back(&avx512_bf16);
  if (has.avx512_vnni) all.push_back(&avx512_vnni);
  if (has.avx512) all.push_back(&avx512::kKernels);
  if (has.avx2_vnni) all.push_back(&avx2_vnni);
  if (has.avx2) all.push_back(&avx2::kKernels);
  all.push_back(&portable::kKernels);
  return all;
}

}  // namespace whippet::cpu
