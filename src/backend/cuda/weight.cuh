// Packed weights as numbers, one element or eight neighbours at a time.
#pragma once

#include <type_traits>

#include "backend/cuda/launch.cuh"

namespace whippet::cuda {

// body(std::integral_constant<LinearKind, kind>).
template <class Body>
void with_kind(LinearKind kind, const Body& body) {
  switch (kind) {
    case LinearKind::kF32:
      return body(std::integral_constant<LinearKind, LinearKind::kF32>());
    case LinearKind::kF16:
      return body(std::integral_constant<LinearKind, LinearKind::kF16>());
    case LinearKind::kBF16:
      return body(std::integral_constant<LinearKind, LinearKind::kBF16>());
    case LinearKind::kInt8:
      return body(std::integral_constant<LinearKind, LinearKind::kInt8>());
    case LinearKind::kInt4:
      return body(std::integral_constant<LinearKind, LinearKind::kInt4>());
  }
}

constexpr __host__ __device__ bool is_dense(LinearKind kind) {
  return kind != LinearKind::kInt8 && kind != LinearKind::kInt4;
}

// The code in packed column c of a row; for dense kinds the weight itself.
template <LinearKind kind>
__device__ __forceinline__ float code_at(const uint8_t* row, int32_t c) {
  if constexpr (kind == LinearKind::kF32) return reinterpret_cast<const float*>(row)[c];
  if constexpr (kind == LinearKind::kF16) return to_float(reinterpret_cast<const __half*>(row)[c]);
  if constexpr (kind == LinearKind::kBF16) return to_float(reinterpret_cast<const __nv_bfloat16*>(row)[c]);
  if constexpr (kind == LinearKind::kInt8) return reinterpret_cast<const int8_t*>(row)[c];
  if constexpr (kind == LinearKind::kInt4) return (row[c / 2] >> (c % 2 * 4)) & 15;
}

template <LinearKind kind>
__device__ __forceinline__ float weight_at(const WeightView& w, int64_t o, int32_t c) {
  const float code = code_at<kind>(w.codes + o * w.row_bytes, c);
  if constexpr (is_dense(kind)) return code;
  const int64_t at = o * w.groups + c / w.group;
  return fmaf(code, w.scale[at], w.min != nullptr ? w.min[at] : 0.0f);
}

// Codes of columns [8 i, 8 i + 8) of a row.
template <LinearKind kind>
__device__ __forceinline__ void codes_of_eight(const uint8_t* row, int32_t i, float* out) {
  if constexpr (kind == LinearKind::kF32) {
    const float4* from = reinterpret_cast<const float4*>(row) + 2 * i;
    const float4 a = __ldg(from), b = __ldg(from + 1);
    out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w;
    out[4] = b.x, out[5] = b.y, out[6] = b.z, out[7] = b.w;
  } else if constexpr (is_dense(kind)) {
    using T = std::conditional_t<kind == LinearKind::kF16, __half, __nv_bfloat16>;
    const uint4 raw = __ldg(reinterpret_cast<const uint4*>(row) + i);
    const T* from = reinterpret_cast<const T*>(&raw);
#pragma unroll
    for (int j = 0; j < 8; ++j) out[j] = to_float(from[j]);
  } else if constexpr (kind == LinearKind::kInt8) {
    const uint2 raw = __ldg(reinterpret_cast<const uint2*>(row) + i);
    const int8_t* from = reinterpret_cast<const int8_t*>(&raw);
#pragma unroll
    for (int j = 0; j < 8; ++j) out[j] = from[j];
  } else {
    const uint32_t raw = __ldg(reinterpret_cast<const uint32_t*>(row) + i);
#pragma unroll
    for (int j = 0; j < 8; ++j) out[j] = (raw >> (4 * j)) & 15;
  }
}

// Weights of columns [8 i, 8 i + 8) of row o; those from w.columns on are 0.
template <LinearKind kind>
__device__ __forceinline__ void weights_of_eight(const WeightView& w, int64_t o, int32_t i, float* out) {
  codes_of_eight<kind>(w.codes + o * w.row_bytes, i, out);
  if constexpr (!is_dense(kind)) {
    if (w.group % 8 == 0) {
      const int64_t at = o * w.groups + 8 * i / w.group;
      const float scale = w.scale[at], min = w.min != nullptr ? w.min[at] : 0.0f;
#pragma unroll
      for (int j = 0; j < 8; ++j) out[j] = fmaf(out[j], scale, min);
    } else {
      for (int j = 0; j < 8 && 8 * i + j < w.columns; ++j) {
        const int64_t at = o * w.groups + (8 * i + j) / w.group;
        out[j] = fmaf(out[j], w.scale[at], w.min != nullptr ? w.min[at] : 0.0f);
      }
    }
  }
}

__device__ __forceinline__ float silu(float x) { return x / (1 + expf(-x)); }

}  // namespace whippet::cuda
