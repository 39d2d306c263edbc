// Weights for the CUDA kernels: see WeightView in kernels.h for the layout. Columns of act-order weights are
// sorted by group, `order` gathers the inputs. Their groups become pieces of 8 to 128 columns that repeat the
// group's scale and minimum, filled up with zero codes where even 8 are too long.
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
