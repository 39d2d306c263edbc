// The forward pass of every family. Read this first.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "model/spec.h"
#include "model/weights.h"

namespace whippet {

struct DecoderLimits {
  int32_t max_tokens = 0;  // rows of one step
  int32_t max_logits = 0;  // rows of one step whose logits are wanted
};

// Owns the activations of a step, allocated once. One thread. The spec, weights and backend must outlive it.
class Decoder {
 public:
  Decoder(const ModelSpec& spec, const Weights& weights, Backend& backend, DecoderLimits limits);

  // Stores the rows' K and V in the caches ([num_layers]) and returns the logits [num_logits, vocab] fp32 of
  // the rows that the batch names; they stay valid until the next call. Pointers of the batch are device
  // memory.
  Mat forward(const BatchView& batch, const std::vector<KvCacheView>& caches);
  // Where forward puts them.
  Mat logits(int32_t count) const;

  // For calibration: one layer alone, on the rows of hidden(), which become what the next layer reads. The
  // batch needs no token ids.
  void run_layer(const BatchView& batch, int32_t layer, const KvCacheView& cache);
  Mat hidden(int32_t rows) const;
  // Called with each projection and its input [num_tokens, in] before it is computed.
  using Observer = std::function<void(const Projection& projection, ConstMat input)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

 private:
  void layer(const BatchView& batch, int32_t index, const KvCacheView& cache);
  void project(ConstMat x, const Projection& projection, Mat out);
  Mat attention_block(const BatchView& batch, int32_t layer, const KvCacheView& cache, ConstMat x,
                      ConstMat cos_sin);
  Mat mlp_block(const LayerWeights& layer, ConstMat x);

  const ModelSpec& spec_;
  const Weights& weights_;
  Backend& backend_;
  DecoderLimits limits_;
  Buffer hidden_, normed_, qkv_, attended_, gate_up_, gated_, cos_sin_, last_, logits_;
  Buffer kv_head_of_q_;  // [num_q_heads] int32
  Observer observer_;
};

}  // namespace whippet
