// What the packers of every backend know of a canonical weight: the kind that it is kept in, and its values.
// reference.cc reads them on its own, to be an oracle of the packers.
#pragma once

#include <cmath>
#include <cstring>

#include "backend/linear_weight.h"

namespace whippet {

// Without a wish of the backend's own: coded weights keep their codes unless they are computed in fp32.
inline LinearKind packed_kind(const CanonicalLinear& w, ComputeType compute) {
  using Codes = CanonicalLinear::Codes;
  if (compute == ComputeType::kF32) return LinearKind::kF32;
  if (w.codes_type == Codes::kU4) return LinearKind::kInt4;
  if (w.codes_type == Codes::kI8) return LinearKind::kInt8;
  if (compute == ComputeType::kBF16) return LinearKind::kBF16;
  if (compute == ComputeType::kF16) return LinearKind::kF16;
  if (w.codes_type == Codes::kF16) return LinearKind::kF16;
  return w.codes_type == Codes::kBF16 ? LinearKind::kBF16 : LinearKind::kF32;
}

template <class T>
T read_code(const CanonicalLinear& w, size_t at) {
  T value;
  std::memcpy(&value, w.codes.data() + at * sizeof(T), sizeof(T));
  return value;
}

// The code at [o, i], at = o * in + i; for dense weights the value itself.
inline float code_value(const CanonicalLinear& w, size_t at) {
  switch (w.codes_type) {
    case CanonicalLinear::Codes::kF32:
      return read_code<float>(w, at);
    case CanonicalLinear::Codes::kF16:
      return f16_to_f32(read_code<uint16_t>(w, at));
    case CanonicalLinear::Codes::kBF16:
      return bf16_to_f32(read_code<uint16_t>(w, at));
    case CanonicalLinear::Codes::kU4:
      return static_cast<float>(read_code<uint8_t>(w, at) & 15);
    case CanonicalLinear::Codes::kI8:
      return read_code<int8_t>(w, at);
  }
  return 0;
}

inline float weight_value(const CanonicalLinear& w, int32_t o, int32_t i) {
  const float code =
      code_value(w, static_cast<size_t>(o) * static_cast<size_t>(w.in) + static_cast<size_t>(i));
  if (w.dense()) return code;
  const int32_t g = w.g_idx.empty() ? i / w.group : w.g_idx[static_cast<size_t>(i)];
  const size_t at = static_cast<size_t>(o) * static_cast<size_t>(w.num_groups()) + static_cast<size_t>(g);
  return std::fma(code, w.scale[at], w.min.empty() ? 0.0f : w.min[at]);
}

}  // namespace whippet
