#include "backend/cpu/isa.h"

namespace whippet::cpu {

namespace neon {
extern const Kernels kKernels;
}
namespace portable {
extern const Kernels kKernels;
}

// Every 64-bit ARM processor has Advanced SIMD, and programs for it are compiled to pass floats in its
// registers: there is nothing to ask.
std::vector<const Kernels*> supported_kernels() { return {&neon::kKernels, &portable::kKernels}; }

}  // namespace whippet::cpu
