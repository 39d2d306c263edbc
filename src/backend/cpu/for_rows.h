// How the CPU backend's row-wise ops share their rows.
#pragma once

#include <algorithm>

#include "backend/cpu/cpu_backend.h"

namespace whippet::cpu {

// Elements below which waking the workers costs more than it saves (about a microsecond's work).
constexpr int64_t kParallelElements = 16384;

template <class Body>
void CpuBackend::for_rows(int32_t rows, int64_t elements_per_row, const Body& body) {
  if (rows <= 1 || rows * elements_per_row < kParallelElements) {
    if (rows > 0) body(0, rows);
    return;
  }
  const int32_t tasks = std::min(rows, 4 * pool_.num_threads());
  pool_.run(tasks, [&](int32_t task, int32_t) {
    const auto bound = [&](int32_t t) { return static_cast<int32_t>(int64_t{rows} * t / tasks); };
    body(bound(task), bound(task + 1));
  });
}

}  // namespace whippet::cpu
