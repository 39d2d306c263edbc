// Which instruction sets the kernels were compiled for and which of them this machine can run.
#pragma once

#include <string_view>
#include <vector>

#include "backend/cpu/kernels.h"

namespace whippet::cpu {

// Best first; "portable" is always the last.
std::vector<const Kernels*> supported_kernels();

// By name, or the best for an empty one; nullptr: not here.
const Kernels* find_kernels(std::string_view name);

}  // namespace whippet::cpu
