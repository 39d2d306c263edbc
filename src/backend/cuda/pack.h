// Weights for the CUDA kernels: see WeightView in kernels.h for the layout. Columns of act-order weights are
// sorted by group, `order` gathers the inputs; where that leaves groups that do not line up, each is filled
// up with zero codes to pieces of eight columns that repeat its scale and minimum.
#pragma once

#include "backend/cuda/kernels.h"
#include "base/error.h"

namespace whippet::cuda {

// For activations of the given type: dense weights become that type, or with fp32 activations keep what
// `compute` says. kCorrupt where sizes or group indices do not fit together.
Result<LinearWeight> pack_linear(const CanonicalLinear& weight, ComputeType compute, DType activations);

// The bias in the type of the activations, for cuBLASLt; nullptr where there is none.
const void* typed_bias(const LinearWeight& weight);

}  // namespace whippet::cuda
