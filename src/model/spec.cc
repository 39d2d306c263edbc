#include "model/spec.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "backend/kv_memory.h"
#include "base/check.h"

namespace whippet {
namespace {

// Llama 3: low frequencies are divided by the factor, high ones kept, those between blended.
double llama3_frequency(const RopeSpec& rope, double frequency) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  const double original = rope.original_max_position;
  if (wavelength < original / rope.high_freq_factor) return frequency;
  if (wavelength > original / rope.low_freq_factor) return frequency / rope.factor;
  const double kept = (original / wavelength - rope.low_freq_factor) /
                      (static_cast<double>(rope.high_freq_factor) - rope.low_freq_factor);
  return (1 - kept) * frequency / rope.factor + kept * frequency;
}

// Dynamic NTK: beyond the trained length the base grows, so that the longest wave still fits.
double rope_base(const ModelSpec& spec, int32_t length) {
  const RopeSpec& rope = spec.rope;
  if (rope.scaling != RopeScaling::kDynamicNtk || length <= rope.original_max_position) return rope.theta;
  const double stretch = static_cast<double>(rope.factor) * length / rope.original_max_position -
                         (static_cast<double>(rope.factor) - 1);
  return rope.theta * std::pow(stretch, spec.head_dim / (spec.head_dim - 2.0));
}

}  // namespace

int64_t ModelSpec::num_parameters() const {
  const int64_t h = hidden_size;
  const int64_t q = q_size();
  const int64_t kv = kv_size();
  const int64_t mlp = intermediate_size;
  int64_t layer = h * (q + 2 * kv) + q * h + 3 * h * mlp + 2 * h;
  if (qkv_bias) layer += q + 2 * kv;
  if (o_bias) layer += h;
  if (mlp_bias) layer += 2 * mlp + h;
  if (qk_norm) layer += int64_t{2} * head_dim;
  return vocab_size * h * (tied_embedding ? 1 : 2) + layer * num_layers + h;
}

int64_t ModelSpec::kv_bytes_per_token(DType kv_type) const {
  return int64_t{2} * num_layers * num_kv_heads * kv_row_bytes(kv_type, head_dim);
}

std::vector<float> rope_frequencies(const ModelSpec& spec, int32_t length) {
  const int32_t half = spec.head_dim / 2;
  const RopeSpec& rope = spec.rope;
  WH_CHECK(rope.scaling != RopeScaling::kFactors || rope.factors.size() == static_cast<size_t>(half));
  const double base = rope_base(spec, length);
  std::vector<float> frequencies(static_cast<size_t>(half));
  for (int32_t i = 0; i < half; ++i) {
    double frequency = std::pow(base, -2.0 * i / spec.head_dim);
    if (rope.scaling == RopeScaling::kLinear) frequency /= rope.factor;
    if (rope.scaling == RopeScaling::kLlama3) frequency = llama3_frequency(rope, frequency);
    if (rope.scaling == RopeScaling::kFactors) frequency /= rope.factors[static_cast<size_t>(i)];
    frequencies[static_cast<size_t>(i)] = static_cast<float>(frequency);
  }
  return frequencies;
}

}  // namespace whippet
