// A runner without a model, for tests of the policy. Its "cache" holds at each place a hash of the whole
// beginning that led there, reached only through the block tables, and a drawn token is a function of that
// hash: a block that is lost, shared wrongly, freed too early or hit wrongly changes an answer or stops a
// check.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "engine/runner.h"

namespace whippet {

class FakeRunner {
 public:
  FakeRunner(const CoreLimits& limits, int32_t vocab);

  Runner runner();

  int64_t num_steps() const { return step_; }
  int32_t max_rows() const { return max_rows_; }  // of any step
  // Rows and blocks a sequence of the steps that were rounded.
  const std::set<std::pair<int32_t, int32_t>>& rounded() const { return rounded_; }
  // The logits of a sequence that holds this token are not finite from then on; -1: none.
  int32_t poison = -1;

 private:
  struct Place {  // of one token in the cache
    uint64_t value = 0, before = 0;
    int64_t written = -1;  // step
  };
  struct Step {
    std::vector<uint64_t> values;  // [num_logits]
    std::vector<int32_t> tokens, ranks, top_ids;
    std::vector<float> logprobs, top_logprobs;
  };

  Place& place(const BatchView& batch, int32_t seq, int32_t position);
  Ticket launch(const Batch& batch);
  void run_row(const Batch& batch, int32_t seq, int32_t row);
  void sample(Ticket ticket, std::span<const SampleRow> rows);
  StepOutput wait(Ticket ticket);

  CoreLimits limits_;
  int32_t vocab_;
  std::vector<Place> cache_;
  std::vector<uint64_t> row_values_;
  Step steps_[2];
  int64_t step_ = 0;
  int32_t max_rows_ = 0;
  std::set<std::pair<int32_t, int32_t>> rounded_;
};

}  // namespace whippet
