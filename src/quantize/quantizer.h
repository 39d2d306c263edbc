// From a dense checkpoint to one in codes, layer by layer: `whippet quantize`. Each layer is calibrated with
// what the layers before it give once they are quantised.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/checkpoint.h"
#include "model/code_grid.h"

namespace whippet {

struct QuantizeOptions {
  bool gptq = true;  // else round to nearest
  CodeGrid grid;     // of 2, 3, 4 or 8 bits
  bool act_order = false;
  double damping = 0.01;
  std::vector<std::vector<int32_t>> sequences;  // of tokens, to calibrate with; unused without gptq
  std::filesystem::path out;                    // a folder that does not exist, or is empty
  int32_t num_threads = 0;                      // 0: one a physical core
};

// The squared error of a layer's outputs over the calibration's inputs, relative to the outputs. Without
// calibration that of its weights, which is what it is for inputs that are independent and of one size.
struct LinearError {
  std::string name;
  double error = 0;           // of what was written
  double rounding_error = 0;  // of rounding to nearest on the same grid
};

// Writes options.out, and OUT.partial until that is done: an interrupted call goes on where it stopped. Draws
// a progress bar on a terminal. In the order of the layers.
Result<std::vector<LinearError>> quantize_model(Checkpoint checkpoint, const QuantizeOptions& options);

}  // namespace whippet
