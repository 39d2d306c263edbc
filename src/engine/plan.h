// What one step computes: the scheduler's answer, read by the batch, the runner's sampling and the commit.
#pragma once

#include <cstdint>
#include <vector>

namespace whippet {

struct Sequence;

// One sequence's part of a step.
struct PlannedRows {
  Sequence* sequence = nullptr;
  int32_t begin = 0;          // position of the first row
  int32_t count = 0;          // rows
  int32_t first_logit = 0;    // index among the step's logits
  int32_t num_logits = 0;     // 0: inside a prompt; 1: draws a token; more: prompt_logprobs
  bool draws = false;         // the last row's logits become a token
  int32_t input_source = -1;  // the last row's input is the token of this logit of the step before
};

struct Plan {
  std::vector<PlannedRows> rows;  // at most one entry a sequence
  int32_t num_tokens = 0;
  int32_t num_logits = 0;

  bool empty() const { return rows.empty(); }
  void clear() {
    rows.clear();
    num_tokens = num_logits = 0;
  }
};

}  // namespace whippet
