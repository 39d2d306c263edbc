// A model without the engine: the logits of every position of one sequence at a time. For `whippet logits`,
// which compares models and finds faults. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "engine/kv_cache.h"
#include "model/decoder.h"
#include "model/loader.h"
#include "whippet/config.h"

namespace whippet {

class LogitsModel {
 public:
  // Loads the config's model (fetching it where allowed), with room for sequences of up to max_len tokens.
  static Result<std::unique_ptr<LogitsModel>> load(const EngineConfig& config, int32_t max_len);

  int32_t vocab_size() const { return model_.spec.vocab_size; }
  size_t weight_bytes() const { return model_.weights.bytes(); }  // on the device

  // Calls on_rows with the logits [rows, vocab_size] of consecutive positions until all are done.
  // kInvalidArgument names an id outside the vocabulary.
  Status forward(std::span<const int32_t> ids, const std::function<Status(std::span<const float>)>& on_rows);
  // A part of that: the logits of some positions from `begin` on, at least one, valid until the next call.
  // The positions before must have been computed, with the same ids.
  Result<std::span<const float>> rows(std::span<const int32_t> ids, size_t begin);

 private:
  LogitsModel(std::unique_ptr<Backend> backend, Model model, DType kv_type, int32_t max_len);

  // Rows [begin, begin + count) of the sequence as the decoder reads them, in words_ on the device.
  BatchView batch_of(std::span<const int32_t> ids, int32_t begin, int32_t count);

  std::unique_ptr<Backend> backend_;
  Model model_;
  int32_t num_blocks_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<int32_t> host_words_;  // a batch before it is copied
  Buffer words_;
  std::vector<float> host_logits_;
};

}  // namespace whippet
