// The text that a model is calibrated with, as tokens: `whippet quantize --calibration FILE`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"

namespace whippet {

struct CalibrationText {
  std::vector<std::vector<int32_t>> sequences;  // to calibrate with
  std::vector<std::vector<int32_t>> held_out;   // others of the same text, to measure with; may be empty
};

struct CalibrationSize {
  size_t samples = 64;  // sequences, at most
  size_t length = 256;  // tokens of each
};

// A text, or, where the name ends in .jsonl, a line of {"text": ...} or {"input_ids": [...]} each. tokenizer:
// nullptr where the model has none; `problem` says why.
Result<CalibrationText> read_calibration(const std::string& path, const Tokenizer* tokenizer,
                                         const std::string& problem, const CalibrationSize& size);

// The same, of tokens: cut into windows that begin with `opening`, spread over the whole.
Result<CalibrationText> cut_calibration(const std::vector<int32_t>& ids, const std::vector<int32_t>& opening,
                                        const CalibrationSize& size);

}  // namespace whippet
