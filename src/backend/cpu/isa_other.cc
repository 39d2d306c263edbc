#include "backend/cpu/isa.h"

namespace whippet::cpu {

namespace portable {
extern const Kernels kKernels;
}

std::vector<const Kernels*> supported_kernels() { return {&portable::kKernels}; }

}  // namespace whippet::cpu
