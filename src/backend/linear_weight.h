// A linear layer's weight, twice: CanonicalLinear is what every file format becomes (one meaning),
// LinearWeight is what a backend packed for its kernels (its own layout). Both are move-only owners.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/buffer.h"
#include "tensor/dtype.h"

namespace whippet {

// w[o, i] = value(code[o, i]) where dense codes are the values themselves (kF32, kF16, kBF16), and otherwise
// w[o, i] = code * scale[o, g] + min[o, g] with g = g_idx.empty() ? i / group : g_idx[i].
struct CanonicalLinear {
  enum class Codes : uint8_t { kF32, kF16, kBF16, kU4, kI8 };

  Codes codes_type = Codes::kF32;
  int32_t out = 0;
  int32_t in = 0;
  // [out, in] row-major, maybe unaligned (read with memcpy). kU4: one code 0..15 a byte. kI8: -128..127.
  std::span<const std::byte> codes;
  Buffer storage;     // what codes points into where it was unpacked; empty where codes views the mapped file
  int32_t group = 0;  // inputs that share a scale; in for one a row; dense: 0
  std::vector<float> scale;    // [out, num_groups]
  std::vector<float> min;      // [out, num_groups] or empty (all 0)
  std::vector<int32_t> g_idx;  // [in] or empty
  std::vector<float> bias;     // [out] or empty

  bool dense() const {
    return codes_type == Codes::kF32 || codes_type == Codes::kF16 || codes_type == Codes::kBF16;
  }
  int32_t num_groups() const { return dense() ? 0 : (in + group - 1) / group; }
};

// What dense weights are computed in. kAuto keeps them as they came; kF32 also dequantises quantised ones.
enum class ComputeType : uint8_t { kAuto, kF32, kBF16, kF16 };

enum class LinearKind : uint8_t { kF32, kF16, kBF16, kInt8, kInt4 };

// Packed for one backend; the layout behind `codes` is that backend's secret. All pointers lie in `storage`.
struct LinearWeight {
  LinearKind kind = LinearKind::kF32;
  int32_t out = 0;
  int32_t in = 0;
  int32_t group = 0;
  const void* codes = nullptr;
  const void* scale = nullptr;
  const void* min = nullptr;       // may be nullptr
  DType scale_type = DType::kF32;  // kF32 or kF16
  DType min_type = DType::kF32;    // the same
  int32_t code_offset = 0;         // what codes as they are stored exceed their values by
  DType input_type = DType::kF32;  // what the kernels round inputs to; kI8: by packed group (reference.h)
  int32_t columns = 0;             // packed columns: in, or more where pads even out act-order groups
  const int32_t* order =
      nullptr;                  // [columns] packed column -> input column, -1: a pad; nullptr: the identity
  const float* bias = nullptr;  // [out], may be nullptr
  size_t bytes = 0;             // what one pass over the weight reads
  Buffer storage;
};

constexpr const char* linear_kind_name(LinearKind kind) {
  switch (kind) {
    case LinearKind::kF32:
      return "float32";
    case LinearKind::kF16:
      return "float16";
    case LinearKind::kBF16:
      return "bfloat16";
    case LinearKind::kInt8:
      return "int8";
    case LinearKind::kInt4:
      return "int4";
  }
  return "?";
}

}  // namespace whippet
