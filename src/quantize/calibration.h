// The calibration tokens on their way through the model, one layer at a time: what each layer's projections
// read, summed up, and what the layer hands to the next. Used by the quantizer. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "model/decoder.h"
#include "model/loader.h"

namespace whippet {

// The sum of x x^T over rows x [size] of inputs, by the backend's matrix product: X^T X.
class Moments {
 public:
  Moments(Backend& backend, int32_t size);
  void add(ConstMat rows);  // [n, size] fp32
  // [size, size], of all rows so far.
  std::span<const float> sum();

 private:
  void flush();

  Backend& backend_;
  int32_t size_;
  int32_t waiting_ = 0;  // columns of turned_ that are filled
  Buffer turned_;        // [size, kRows]: rows that are not in the sum yet, as columns
  Buffer product_;       // [size, size]
  std::vector<float> sum_;
};

// Of one layer, of what each of its projections reads.
struct LayerMoments {
  Moments qkv, o, gate_up, down;
};

class Calibration {
 public:
  // Embeds the sequences, none of them empty and all of the vocabulary. The backend computes in fp32 and on
  // the host; it and the spec must outlive the result.
  static Result<std::unique_ptr<Calibration>> create(const Checkpoint& checkpoint, const ModelSpec& spec,
                                                     Backend& backend,
                                                     std::span<const std::vector<int32_t>> sequences);

  // Runs all sequences through layer `index` and sums up what its projections read. They stay before it.
  LayerMoments measure(LayerWeights weights, int32_t index);
  // Runs all sequences through layer `index`.
  void advance(LayerWeights weights, int32_t index);

  // Bytes that a calibration of so many tokens and its moments take at once.
  static uint64_t memory(const ModelSpec& spec, uint64_t tokens);

 private:
  Calibration(const ModelSpec& spec, Backend& backend, int32_t longest);
  void run(LayerWeights weights, int32_t index, bool keep);
  BatchView batch_of(int32_t length);

  ModelSpec spec_;                // of one layer
  std::vector<int32_t> windows_;  // of all layers
  Backend& backend_;
  int32_t num_blocks_;
  Weights weights_;  // of that layer
  std::vector<Buffer> cache_;
  std::vector<int32_t> words_;  // what the batch points into
  std::vector<float> frequencies_;
  std::vector<std::vector<float>> states_;  // [tokens, hidden] of each sequence
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace whippet
