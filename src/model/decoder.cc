#include "model/decoder.h"

#include <cmath>

namespace whippet {

Decoder::Decoder(const ModelSpec& spec, const Weights& weights, Backend& backend, DecoderLimits limits)
    : spec_(spec), weights_(weights), backend_(backend), limits_(limits) {
  const size_t element = dtype_size(backend.activation_type());
  const auto rows = [&](int32_t count, int32_t columns, size_t bytes) {
    return backend.allocate(static_cast<size_t>(count) * static_cast<size_t>(columns) * bytes);
  };
  hidden_ = rows(limits.max_tokens, spec.hidden_size, element);
  normed_ = rows(limits.max_tokens, spec.hidden_size, element);
  qkv_ = rows(limits.max_tokens, spec.q_size() + 2 * spec.kv_size(), element);
  attended_ = rows(limits.max_tokens, spec.q_size(), element);
  gate_up_ = rows(limits.max_tokens, 2 * spec.intermediate_size, element);
  gated_ = rows(limits.max_tokens, spec.intermediate_size, element);
  cos_sin_ = rows(limits.max_tokens, spec.head_dim, sizeof(float));
  last_ = rows(limits.max_logits, spec.hidden_size, element);
  logits_ = rows(limits.max_logits, spec.vocab_size, sizeof(float));

  std::vector<int32_t> kv_head_of_q(static_cast<size_t>(spec.num_q_heads));
  const int32_t q_per_kv = spec.num_q_heads / spec.num_kv_heads;
  for (int32_t q = 0; q < spec.num_q_heads; ++q) kv_head_of_q[static_cast<size_t>(q)] = q / q_per_kv;
  kv_head_of_q_ = backend.allocate(kv_head_of_q.size() * sizeof(int32_t));
  backend.copy_to_device(kv_head_of_q_.as<void>(), kv_head_of_q.data(),
                         kv_head_of_q.size() * sizeof(int32_t));
}

Mat Decoder::forward(const BatchView& batch, const std::vector<KvCacheView>& caches) {
  WH_CHECK_LE(batch.num_tokens, limits_.max_tokens);
  WH_CHECK_LE(batch.num_logits, limits_.max_logits);
  WH_CHECK_EQ(caches.size(), weights_.layers.size());
  const Mat x = hidden(batch.num_tokens);
  backend_.embed(batch.token_ids, weights_.embedding, x);
  backend_.rope_angles(batch, cos_sin_.mat(DType::kF32, batch.num_tokens, spec_.head_dim));
  for (int32_t i = 0; i < spec_.num_layers; ++i) layer(batch, i, caches[static_cast<size_t>(i)]);

  const Mat logits = this->logits(batch.num_logits);
  if (batch.num_logits == 0) return logits;
  const Mat last = last_.mat(backend_.activation_type(), batch.num_logits, spec_.hidden_size);
  backend_.gather_rows(x, batch.logit_rows, last);
  backend_.rms_norm(last, weights_.final_norm.as<float>(), spec_.hidden_size, spec_.rms_eps, last);
  backend_.linear(last, weights_.output(), logits);
  return logits;
}

void Decoder::layer(const BatchView& batch, int32_t index, const KvCacheView& cache) {
  const LayerWeights& weights = weights_.layers[static_cast<size_t>(index)];
  const Mat x = hidden(batch.num_tokens);
  const Mat normed = normed_.mat(backend_.activation_type(), batch.num_tokens, spec_.hidden_size);
  const Mat cos_sin = cos_sin_.mat(DType::kF32, batch.num_tokens, spec_.head_dim);
  backend_.rms_norm(x, weights.attention_norm.as<float>(), spec_.hidden_size, spec_.rms_eps, normed);
  const Mat attended = attention_block(batch, index, cache, normed, cos_sin);
  project(attended, weights.o, normed);
  backend_.add(normed, x);
  backend_.rms_norm(x, weights.mlp_norm.as<float>(), spec_.hidden_size, spec_.rms_eps, normed);
  const Mat gated = mlp_block(weights, normed);
  project(gated, weights.down, normed);
  backend_.add(normed, x);
}

void Decoder::run_layer(const BatchView& batch, int32_t layer, const KvCacheView& cache) {
  WH_CHECK_LE(batch.num_tokens, limits_.max_tokens);
  backend_.rope_angles(batch, cos_sin_.mat(DType::kF32, batch.num_tokens, spec_.head_dim));
  this->layer(batch, layer, cache);
}

Mat Decoder::hidden(int32_t rows) const {
  return hidden_.mat(backend_.activation_type(), rows, spec_.hidden_size);
}

Mat Decoder::logits(int32_t count) const { return logits_.mat(DType::kF32, count, spec_.vocab_size); }

Mat Decoder::attention_block(const BatchView& batch, int32_t layer, const KvCacheView& cache, ConstMat x,
                             ConstMat cos_sin) {
  const LayerWeights& weights = weights_.layers[static_cast<size_t>(layer)];
  const DType dtype = backend_.activation_type();
  const Mat qkv = qkv_.mat(dtype, x.rows, spec_.q_size() + 2 * spec_.kv_size());
  const Mat q = qkv.columns(0, spec_.q_size());
  const Mat k = qkv.columns(spec_.q_size(), spec_.kv_size());
  const Mat v = qkv.columns(spec_.q_size() + spec_.kv_size(), spec_.kv_size());
  const Mat out = attended_.mat(dtype, x.rows, spec_.q_size());

  project(x, weights.qkv, qkv);
  if (spec_.qk_norm) {
    backend_.rms_norm(q, weights.q_norm.as<float>(), spec_.head_dim, spec_.rms_eps, q);
    backend_.rms_norm(k, weights.k_norm.as<float>(), spec_.head_dim, spec_.rms_eps, k);
  }
  backend_.rope(q, spec_.head_dim, cos_sin);
  backend_.rope(k, spec_.head_dim, cos_sin);
  backend_.store_kv(batch, k, v, cache);
  backend_.attention(batch, {.q = q,
                             .cache = cache,
                             .kv_head_of_q = kv_head_of_q_.as<int32_t>(),
                             .num_q_heads = spec_.num_q_heads,
                             .scale = 1.0f / std::sqrt(static_cast<float>(spec_.head_dim)),
                             .window = spec_.window_of_layer[static_cast<size_t>(layer)],
                             .out = out});
  return out;
}

Mat Decoder::mlp_block(const LayerWeights& layer, ConstMat x) {
  const Mat gate_up = gate_up_.mat(backend_.activation_type(), x.rows, 2 * spec_.intermediate_size);
  const Mat gated = gated_.mat(backend_.activation_type(), x.rows, spec_.intermediate_size);
  project(x, layer.gate_up, gate_up);
  backend_.silu_mul(gate_up, gated);
  return gated;
}

void Decoder::project(ConstMat x, const Projection& projection, Mat out) {
  if (observer_) observer_(projection, x);
  int32_t column = 0;
  for (const LinearWeight& part : projection.parts) {
    backend_.linear(x, part, out.columns(column, part.out));
    column += part.out;
  }
}

}  // namespace whippet
