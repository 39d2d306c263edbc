// From a Plan to what a device reads: one flat buffer of 32-bit words, laid out once per step and copied as a
// whole. Two buffers take turns, so that one can be filled while the step of the other runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/views.h"
#include "engine/limits.h"
#include "engine/plan.h"
#include "tensor/buffer.h"

namespace whippet {

struct Batch {
  int32_t slot = 0;                // which of the two buffers; also the runner's ticket
  BatchView host;                  // pointers into words
  std::span<const int32_t> words;  // everything that the view points to
  // [num_tokens] -1, or where this row's input token stands among the tokens drawn by the step before, which
  // the host has not seen yet.
  std::span<const int32_t> sources;
  bool has_sources = false;
  // Rows that the device computes, of one token each, where the batch was filled up; 0: those of `host`.
  int32_t rounded_rows = 0;

  // The same view over a copy of `words` at `base`, with the rows that fill it up.
  BatchView at(const int32_t* base) const;
};

// Of a step of one row a sequence, filled up.
struct BatchShape {
  int32_t rows = 0;
  int32_t blocks = 0;  // a sequence
};

class BatchBuilder {
 public:
  // num_frequencies: RoPE frequencies of a sequence (head_dim / 2).
  BatchBuilder(const CoreLimits& limits, int32_t num_frequencies);

  // The result is valid until the build after the next one. Never allocates.
  const Batch& build(const Plan& plan);

  // Every shape that a step of one row a sequence is filled up to, where batches are rounded.
  std::vector<BatchShape> rounded_shapes() const;
  // A batch of that shape whose rows belong to nothing: what a device knows once it has run that, it knows
  // for all of the shape. Valid as build()'s.
  const Batch& blank(const BatchShape& shape);

  // Words of the largest batch.
  static size_t max_words(const CoreLimits& limits, int32_t num_frequencies);

 private:
  CoreLimits limits_;
  int32_t num_frequencies_;
  int32_t next_ = 0;
  Buffer words_[2];
  Batch batch_[2];
};

}  // namespace whippet
