#include "backend/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace whippet::reference {
namespace {

template <class T>
T read_element(const std::byte* data, size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

float code_value(const CanonicalLinear& w, size_t index) {
  const std::byte* codes = w.codes.data();
  switch (w.codes_type) {
    case CanonicalLinear::Codes::kF32:
      return read_element<float>(codes, index);
    case CanonicalLinear::Codes::kF16:
      return f16_to_f32(read_element<uint16_t>(codes, index));
    case CanonicalLinear::Codes::kBF16:
      return bf16_to_f32(read_element<uint16_t>(codes, index));
    case CanonicalLinear::Codes::kU4:
      return static_cast<float>(read_element<uint8_t>(codes, index));
    case CanonicalLinear::Codes::kI8:
      return static_cast<float>(read_element<int8_t>(codes, index));
  }
  WH_CHECK(false, "codes type {}", static_cast<int>(w.codes_type));
}

float weight_value(const CanonicalLinear& w, int32_t o, int32_t i) {
  const float code = code_value(w, static_cast<size_t>(o) * w.in + i);
  if (w.dense()) return code;
  const int32_t g = w.g_idx.empty() ? i / w.group : w.g_idx[i];
  const size_t at = static_cast<size_t>(o) * w.num_groups() + g;
  return std::fma(code, w.scale[at], w.min.empty() ? 0.0f : w.min[at]);
}

void check_f32(ConstMat m) { WH_CHECK(m.dtype == DType::kF32, "{}", dtype_name(m.dtype)); }

// A row of an int8 cache, as KvCacheView says.
float quantise(const float* row, int32_t dim, int8_t* to) {
  float most = 0;
  std::fill_n(to, dim, int8_t{0});
  for (int32_t d = 0; d < dim; ++d) {
    if (!std::isfinite(row[d])) return std::numeric_limits<float>::quiet_NaN();
    most = std::max(most, std::abs(row[d]));
  }
  if (!(most > 1e-30f)) return 0;
  for (int32_t d = 0; d < dim; ++d) to[d] = static_cast<int8_t>(std::nearbyint(row[d] * (127 / most)));
  return most / 127;
}

void store_row(const float* from, const KvCacheView& cache, void* base, float* scales, int64_t row) {
  const int32_t dim = cache.head_dim;
  const int64_t at = row * dim;
  if (cache.dtype == DType::kI8) {
    scales[row] = quantise(from, dim, static_cast<int8_t*>(base) + at);
    return;
  }
  for (int32_t d = 0; d < dim; ++d) {
    switch (cache.dtype) {
      case DType::kF32:
        static_cast<float*>(base)[at + d] = from[d];
        break;
      case DType::kF16:
        static_cast<uint16_t*>(base)[at + d] = f32_to_f16(from[d]);
        break;
      case DType::kBF16:
        static_cast<uint16_t*>(base)[at + d] = f32_to_bf16(from[d]);
        break;
      default:
        WH_CHECK(false, "KV cache of {}", dtype_name(cache.dtype));
    }
  }
}

}  // namespace

std::vector<float> dequantise(const CanonicalLinear& weight) {
  std::vector<float> values(static_cast<size_t>(weight.out) * weight.in);
  for (int32_t o = 0; o < weight.out; ++o)
    for (int32_t i = 0; i < weight.in; ++i)
      values[static_cast<size_t>(o) * weight.in + i] = weight_value(weight, o, i);
  return values;
}

void fill_inputs(const BatchView& batch, const int32_t* drawn, int32_t* token_ids) {
  for (int32_t r = 0; r < batch.num_tokens; ++r)
    if (batch.sources[r] >= 0) token_ids[r] = drawn[batch.sources[r]] < 0 ? 0 : drawn[batch.sources[r]];
}

void embed(const int32_t* ids, const CanonicalLinear& table, Mat out) {
  check_f32(out);
  WH_CHECK_EQ(out.cols, table.in);
  for (int32_t r = 0; r < out.rows; ++r) {
    WH_CHECK(ids[r] >= 0 && ids[r] < table.out, "id {} of {}", ids[r], table.out);
    for (int32_t i = 0; i < out.cols; ++i) out.row<float>(r)[i] = weight_value(table, ids[r], i);
  }
}

void rms_norm(ConstMat x, const float* weight, int32_t dim, float eps, Mat out) {
  check_f32(x);
  check_f32(out);
  for (int32_t r = 0; r < x.rows; ++r) {
    for (int32_t begin = 0; begin < x.cols; begin += dim) {
      const float* in = x.row<float>(r) + begin;
      double sum = 0;
      for (int32_t i = 0; i < dim; ++i) sum += static_cast<double>(in[i]) * in[i];
      const double factor = 1 / std::sqrt(sum / dim + eps);
      for (int32_t i = 0; i < dim; ++i)
        out.row<float>(r)[begin + i] = static_cast<float>(in[i] * factor * weight[i]);
    }
  }
}

void linear(ConstMat x, const CanonicalLinear& w, Mat out) {
  check_f32(x);
  check_f32(out);
  WH_CHECK(x.cols == w.in && out.cols == w.out && x.rows == out.rows);
  const std::vector<float> values = dequantise(w);
  for (int32_t r = 0; r < x.rows; ++r) {
    for (int32_t o = 0; o < w.out; ++o) {
      double sum = w.bias.empty() ? 0.0 : w.bias[o];
      for (int32_t i = 0; i < w.in; ++i)
        sum += static_cast<double>(x.row<float>(r)[i]) * values[static_cast<size_t>(o) * w.in + i];
      out.row<float>(r)[o] = static_cast<float>(sum);
    }
  }
}

namespace {

float in_16_bits(float x, float most) {
  constexpr float kSteps = 32767;
  return std::nearbyint(x * (kSteps / most)) * (most / kSteps);
}

}  // namespace

void round_inputs(ConstMat x, const LinearWeight& packed, Mat out) {
  for (int32_t r = 0; r < x.rows; ++r) {
    const float* in = x.row<float>(r);
    float* to = out.row<float>(r);
    if (packed.input_type != DType::kI8) {
      for (int32_t i = 0; i < x.cols; ++i)
        to[i] = packed.input_type == DType::kBF16 ? bf16_to_f32(f32_to_bf16(in[i])) : in[i];
      continue;
    }
    for (int32_t begin = 0; begin < packed.columns; begin += packed.group) {
      std::vector<int32_t> members;
      for (int32_t c = begin; c < std::min(packed.columns, begin + packed.group); ++c)
        if (packed.order == nullptr || packed.order[c] >= 0)
          members.push_back(packed.order != nullptr ? packed.order[c] : c);
      float most = 0;
      bool finite = true;
      for (const int32_t i : members) {
        most = std::max(most, std::abs(in[i]));
        finite = finite && std::isfinite(in[i]);
      }
      for (const int32_t i : members)
        to[i] = !finite         ? std::numeric_limits<float>::quiet_NaN()
                : most > 1e-30f ? in_16_bits(in[i], most)
                                : 0.0f;
    }
  }
}

void rope_angles(const BatchView& batch, Mat cos_sin) {
  check_f32(cos_sin);
  const int32_t half = cos_sin.cols / 2;
  for (int32_t r = 0; r < batch.num_tokens; ++r) {
    const float* inv_freq = batch.inv_freq + static_cast<int64_t>(batch.seq_of_token[r]) * half;
    for (int32_t i = 0; i < half; ++i) {
      const float angle =
          static_cast<float>(batch.positions[r]) * inv_freq[i];  // fp32, as models were trained
      cos_sin.row<float>(r)[i] = static_cast<float>(std::cos(static_cast<double>(angle)));
      cos_sin.row<float>(r)[half + i] = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
}

void rope(Mat x, int32_t head_dim, ConstMat cos_sin) {
  check_f32(x);
  const int32_t half = head_dim / 2;
  for (int32_t r = 0; r < x.rows; ++r) {
    const float* angles = cos_sin.row<float>(r);
    for (int32_t begin = 0; begin < x.cols; begin += head_dim) {
      float* head = x.row<float>(r) + begin;
      for (int32_t i = 0; i < half; ++i) {
        const double a = head[i], b = head[half + i], c = angles[i], s = angles[half + i];
        head[i] = static_cast<float>(a * c - b * s);
        head[half + i] = static_cast<float>(b * c + a * s);
      }
    }
  }
}

void store_kv(const BatchView& batch, ConstMat k, ConstMat v, const KvCacheView& cache) {
  for (int32_t r = 0; r < batch.num_tokens; ++r) {
    const int32_t position = batch.positions[r];
    const int32_t* table =
        batch.block_table + static_cast<int64_t>(batch.seq_of_token[r]) * batch.max_blocks_per_seq;
    const int64_t block = table[position / cache.block_size];
    for (int32_t h = 0; h < cache.num_kv_heads; ++h) {
      const int64_t row = (block * cache.num_kv_heads + h) * cache.block_size + position % cache.block_size;
      store_row(k.row<float>(r) + h * cache.head_dim, cache, cache.k, cache.k_scales, row);
      store_row(v.row<float>(r) + h * cache.head_dim, cache, cache.v, cache.v_scales, row);
    }
  }
}

void silu_mul(ConstMat gate_up, Mat out) {
  for (int32_t r = 0; r < out.rows; ++r) {
    const float* in = gate_up.row<float>(r);
    for (int32_t i = 0; i < out.cols; ++i) {
      const double gate = in[i];
      out.row<float>(r)[i] = static_cast<float>(gate / (1 + std::exp(-gate)) * in[out.cols + i]);
    }
  }
}

void add(ConstMat y, Mat x) {
  for (int32_t r = 0; r < x.rows; ++r)
    for (int32_t i = 0; i < x.cols; ++i) x.row<float>(r)[i] += y.row<float>(r)[i];
}

void gather_rows(ConstMat x, const int32_t* rows, Mat out) {
  for (int32_t r = 0; r < out.rows; ++r)
    for (int32_t i = 0; i < out.cols; ++i) out.row<float>(r)[i] = x.row<float>(rows[r])[i];
}

}  // namespace whippet::reference
