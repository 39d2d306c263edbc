// How long kinds of sampling take by themselves. Used by cuda_bench.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"

namespace whippet {

// Prints, for each number of rows, for normally distributed and for equal logits, the median of each kind.
void bench_sampling(Backend& backend, int32_t vocab, std::span<const int32_t> rows);

}  // namespace whippet
