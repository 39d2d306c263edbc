// One matrix product of a warp on the tensor cores: c [16, 8] += a [16, 16] b [16, 8], fp32 sums. With g =
// lane / 4 and i = 2 (lane % 4), a lane holds of a: rows g, g + 8, g, g + 8 in columns i, i, i + 8, i + 8
// (and the next); of b: rows i, i + 8 (and the next) in column g; of c: rows g, g, g + 8, g + 8 in columns i,
// i + 1, i, i + 1.
#pragma once

#include <type_traits>

#include "backend/cuda/launch.cuh"

namespace whippet::cuda {

template <class T>
__device__ __forceinline__ void mma(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                    uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<T, __half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
}

}  // namespace whippet::cuda
