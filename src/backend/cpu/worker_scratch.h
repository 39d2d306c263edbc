// Memory that one worker of the CPU backend keeps between ops, so that ops allocate nothing.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/cpu/kernels.h"
#include "tensor/buffer.h"

namespace whippet::cpu {

struct WorkerScratch {
  Buffer kernel;  // floats [max(kLinearScratch, kAttentionScratch)]
  Buffer states;  // floats, two attention states of a full tile
  // For sampling, as long as the longest row of logits can be. Pages are touched on first use only.
  std::unique_ptr<float[]> raw;          // a copy of the logits
  std::unique_ptr<float[]> weights;      // their softmax weights
  std::unique_ptr<double[]> block_sums;  // of the weights, by kExpBlock
  std::unique_ptr<int32_t[]> ids;        // candidates
};

}  // namespace whippet::cpu
