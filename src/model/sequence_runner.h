// Runs one sequence through a Decoder with a small paged cache of its own, in chunks of any size. For tests,
// and for what is measured of a model before it serves.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "model/decoder.h"
#include "model/loader.h"

namespace whippet {

class SequenceRunner {
 public:
  // Up to max_length tokens, of which one feed() may take max_rows (0: all). RoPE is planned for rope_length.
  SequenceRunner(const Model& model, Backend& backend, int32_t max_length, DType kv_type,
                 int32_t max_rows = 0);

  // Forgets the sequence; the next one is planned for rope_length tokens.
  void restart(int32_t rope_length);
  // The next tokens of the sequence; their logits, [ids, vocab].
  std::vector<float> feed(std::span<const int32_t> ids);
  int32_t length() const { return length_; }
  int32_t vocab() const { return model_.spec.vocab_size; }

 private:
  template <class T>
  const T* upload(const std::vector<T>& values);

  const Model& model_;
  Backend& backend_;
  Decoder decoder_;
  std::vector<Buffer> cache_memory_;
  std::vector<KvCacheView> caches_;
  std::vector<int32_t> block_table_;
  std::vector<float> inv_freq_;
  std::vector<Buffer> uploads_;  // of the step that runs
  int32_t length_ = 0;
};

int32_t argmax(std::span<const float> logits);
// The greedy continuation of a prompt, fed in chunks, then token by token.
std::vector<int32_t> greedy(SequenceRunner& runner, std::span<const int32_t> prompt, int32_t chunk,
                            int32_t steps, int32_t rope_length);

}  // namespace whippet
