// How every kernel is launched and how it begins and ends. A kernel may start before the one ahead of it has
// ended (programmatic dependent launch, sm_90 on): it calls wait_for_inputs() before it touches anything that
// another kernel writes, and may read weights, which nothing writes, before that.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "backend/cuda/kernels.h"
#include "base/check.h"

namespace whippet::cuda {

__device__ __forceinline__ void wait_for_inputs() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// From here on the next kernel's blocks may take the places that this one leaves free.
__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

template <class... Params, class... Args>
void launch(const Queue& queue, const char* op, void (*kernel)(Params...), dim3 grid, dim3 block,
            size_t shared_bytes, Args... args) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = queue.stream;
  config.attrs = &attribute;
  config.numAttrs = queue.early_start ? 1 : 0;
  const cudaError_t error = cudaLaunchKernelEx(&config, kernel, Params(args)...);
  WH_CHECK(error == cudaSuccess, "{} with a grid of {} x {} x {} blocks of {}: {}", op, grid.x, grid.y,
           grid.z, block.x, cudaGetErrorString(error));
}

template <class T>
struct Tag {
  using Type = T;
};

// body(Tag<T>) for the type that activations or caches of `dtype` have on the device.
template <class Body>
void with_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
      return body(Tag<float>());
    case DType::kF16:
      return body(Tag<__half>());
    case DType::kBF16:
      return body(Tag<__nv_bfloat16>());
    default:
      WH_CHECK(false, "no kernels for {}", dtype_name(dtype));
  }
}

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// (x + i y) (c + i s), rounded alike wherever it is written.
__device__ __forceinline__ void rotate_pair(float x, float y, float c, float s, float& low, float& high) {
  low = fmaf(x, c, -__fmul_rn(y, s));
  high = fmaf(y, c, __fmul_rn(x, s));
}

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, offset));
  return x;
}

}  // namespace whippet::cuda
