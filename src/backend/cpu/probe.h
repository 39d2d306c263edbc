// What this machine can do at most with a number of threads: the denominators of every speed that is reported
// as a share. Used by benchmarks. Takes less than a second.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace whippet::cpu {

struct MachineSpeed {
  std::string isa;
  int32_t num_threads = 0;
  double read_gb_per_s = 0;  // memory beyond the caches, read by all threads, best of some passes
  // Multiply-adds from registers, all threads, two operations each: fp32, 8-bit integers, and pairs of bf16
  // (0 where there is no instruction for them).
  double fma_gflops = 0;
  double dot_gops = 0;
  double pair_gflops = 0;
};

// Arguments as make_backend's options.
Result<MachineSpeed> measure_machine(int32_t num_threads = 0, const std::string& isa = "");

}  // namespace whippet::cpu
