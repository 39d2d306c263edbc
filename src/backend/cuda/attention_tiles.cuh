// Tiles of keys and values in shared memory and the numbers that go into the tensor cores, for the attention
// kernels that use them. A tile has a row of head_dim numbers of 16 bits a key; chunk c of 16 bytes of key k
// lies at chunk c ^ (k & 7).
#pragma once

#include "backend/cuda/attention.cuh"
#include "backend/cuda/mma.cuh"

namespace whippet::cuda {

__device__ __forceinline__ void load_matrices(uint32_t at, uint32_t (&m)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(at)
               : "memory");
}
__device__ __forceinline__ void load_transposed(uint32_t at, uint32_t (&m)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(at)
               : "memory");
}
// Where a lane reads of 16 keys from `key` on, for ldmatrix: four matrices of eight keys by sixteen bytes.
// by_key: the second matrix has the next keys, otherwise the next chunk.
template <int kDim>
__device__ __forceinline__ uint32_t matrix_at(uint32_t tile, int32_t key, int32_t chunk, bool by_key) {
  const int32_t lane = threadIdx.x % 32, second = lane / 8 % 2, fourth = lane / 16;
  key += lane % 8 + 8 * (by_key ? second : fourth);
  chunk += by_key ? fourth : second;
  return tile + static_cast<uint32_t>(key * kDim * 2 + (chunk ^ (key & 7)) * 16);
}

// Numbers as the sum of two of 16 bits.
template <class T>
struct Halves {
  uint32_t high, low;
};
template <class T>
__device__ __forceinline__ Halves<T> split_pair(float x, float y) {
  const T high[2] = {from_float<T>(x), from_float<T>(y)};
  const T low[2] = {from_float<T>(x - to_float(high[0])), from_float<T>(y - to_float(high[1]))};
  return {*reinterpret_cast<const uint32_t*>(high), *reinterpret_cast<const uint32_t*>(low)};
}

}  // namespace whippet::cuda
