#include "model/weights.h"

namespace whippet {
namespace {

template <class F>
void for_each_linear(const Weights& weights, F f) {
  for (const LayerWeights& layer : weights.layers) {
    for (const Projection* projection : {&layer.qkv, &layer.o, &layer.gate_up, &layer.down}) {
      for (const LinearWeight& part : projection->parts) f(part);
    }
  }
}

size_t norm_bytes(const Weights& weights) {
  size_t sum = weights.final_norm.bytes();
  for (const LayerWeights& layer : weights.layers) {
    sum +=
        layer.attention_norm.bytes() + layer.q_norm.bytes() + layer.k_norm.bytes() + layer.mlp_norm.bytes();
  }
  return sum;
}

}  // namespace

std::vector<const LinearWeight*> Weights::linears() const {
  std::vector<const LinearWeight*> all = {&embedding};
  if (head.out > 0) all.push_back(&head);
  for_each_linear(*this, [&](const LinearWeight& w) { all.push_back(&w); });
  return all;
}

size_t Weights::bytes_per_step() const {
  size_t sum = norm_bytes(*this) + output().bytes;
  for_each_linear(*this, [&](const LinearWeight& w) { sum += w.bytes; });
  return sum;
}

size_t Weights::bytes() const {
  size_t sum = norm_bytes(*this) + embedding.storage.bytes() + head.storage.bytes();
  for_each_linear(*this, [&](const LinearWeight& w) { sum += w.storage.bytes(); });
  return sum;
}

}  // namespace whippet
