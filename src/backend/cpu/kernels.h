// The hot loops of the CPU backend as one table of functions per instruction set. Their files are compiled
// once per set, each in a namespace of its own, and include nothing but PODs: an inline function shared with
// the rest of the program could be merged by the linker into a copy that this machine cannot run.
#pragma once

#include <cstdint>

namespace whippet::cpu {

struct Kernels {
  const char* name;
};

}  // namespace whippet::cpu
