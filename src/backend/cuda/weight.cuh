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

__device__ __forceinline__ const uint8_t* cell_of(const WeightView& w, int64_t o, int32_t i) {
  return w.codes + (o / kCellRows * w.cells + i / 16) * w.cell_bytes;
}
// The eight codes of columns [8 i, 8 i + 8) of row o.
template <LinearKind kind>
__device__ __forceinline__ const uint8_t* eight_of(const WeightView& w, int64_t o, int32_t i) {
  return cell_of(w, o, i) + place_in_cell(kind, o, i);
}

// The code in column c; for dense kinds the weight itself.
template <LinearKind kind>
__device__ __forceinline__ float code_at(const WeightView& w, int64_t o, int32_t c) {
  const uint8_t* row = w.codes + o * w.row_bytes;
  if constexpr (kind == LinearKind::kF32) return reinterpret_cast<const float*>(row)[c];
  if constexpr (kind == LinearKind::kF16) return to_float(reinterpret_cast<const __half*>(row)[c]);
  if constexpr (kind == LinearKind::kBF16) return to_float(reinterpret_cast<const __nv_bfloat16*>(row)[c]);
  const uint8_t* eight = eight_of<kind>(w, o, c / 8);
  if constexpr (kind == LinearKind::kInt8) return static_cast<int8_t>(eight[byte_of_column(c)]);
  if constexpr (kind == LinearKind::kInt4)
    return (*reinterpret_cast<const uint32_t*>(eight) >> bit_of_column(c)) & 15;
}

struct Factors {
  float scale, min;
};
// Those of column c.
template <LinearKind kind>
__device__ __forceinline__ Factors factors_at(const WeightView& w, int64_t o, int32_t c) {
  const auto* scales = reinterpret_cast<const float*>(cell_of(w, o, c / 8) + code_bytes_of_cell(kind)) +
                       c % kCellColumns / w.group * kCellRows + o % kCellRows;
  return {__ldg(scales), w.has_min ? __ldg(scales + kCellColumns / w.group * kCellRows) : 0.0f};
}

template <LinearKind kind>
__device__ __forceinline__ float weight_at(const WeightView& w, int64_t o, int32_t c) {
  const float code = code_at<kind>(w, o, c);
  if constexpr (is_dense(kind)) return code;
  const Factors by = factors_at<kind>(w, o, c);
  return fmaf(code - static_cast<float>(w.code_offset), by.scale, by.min);
}

// Codes of columns [8 i, 8 i + 8) of a row.
template <LinearKind kind>
__device__ __forceinline__ void codes_of_eight(const WeightView& w, int64_t o, int32_t i, float* out) {
  const uint8_t* row = w.codes + o * w.row_bytes;
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
  } else {
    const uint8_t* eight = eight_of<kind>(w, o, i);
    if constexpr (kind == LinearKind::kInt8) {
      const uint2 raw = __ldg(reinterpret_cast<const uint2*>(eight));
      const int8_t* from = reinterpret_cast<const int8_t*>(&raw);
#pragma unroll
      for (int j = 0; j < 8; ++j) out[j] = from[byte_of_column(j)];
    } else {
      const uint32_t raw = __ldg(reinterpret_cast<const uint32_t*>(eight));
#pragma unroll
      for (int j = 0; j < 8; ++j) out[j] = (raw >> bit_of_column(j)) & 15;
    }
  }
}

// Weights of columns [8 i, 8 i + 8) of row o; those from w.columns on are 0.
template <LinearKind kind>
__device__ __forceinline__ void weights_of_eight(const WeightView& w, int64_t o, int32_t i, float* out) {
  codes_of_eight<kind>(w, o, i, out);
  if constexpr (!is_dense(kind)) {
    const auto offset = static_cast<float>(w.code_offset);
    if (w.group % 8 == 0) {
      const Factors by = factors_at<kind>(w, o, 8 * i);
#pragma unroll
      for (int j = 0; j < 8; ++j)
        out[j] = 8 * i + j < w.columns ? fmaf(out[j] - offset, by.scale, by.min) : 0.0f;
    } else {
      for (int j = 0; j < 8; ++j) {
        const Factors by = factors_at<kind>(w, o, 8 * i + j);
        out[j] = 8 * i + j < w.columns ? fmaf(out[j] - offset, by.scale, by.min) : 0.0f;
      }
    }
  }
}

__device__ __forceinline__ float silu(float x) { return x / (1 + expf(-x)); }

}  // namespace whippet::cuda
