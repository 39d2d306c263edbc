#include "backend/cpu/isa.h"

namespace whippet::cpu {

namespace {
constexpr Kernels kPortable = {"portable"};
}

std::vector<const Kernels*> supported_kernels() { return {&kPortable}; }

const Kernels* find_kernels(std::string_view name) {
  for (const Kernels* kernels : supported_kernels())
    if (name.empty() || name == kernels->name) return kernels;
  return nullptr;
}

}  // namespace whippet::cpu
