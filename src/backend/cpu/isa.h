// Which instruction sets the kernels were compiled for and which of them this machine can run.
#pragma once

#include <vector>

#include "backend/cpu/kernels.h"

namespace whippet::cpu {

// Best first; "portable" is always the last.
std::vector<const Kernels*> supported_kernels();

}  // namespace whippet::cpu
