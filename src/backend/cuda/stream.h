// Products of few rows with more weights than fit into shared memory: see stream_kernels.cu. Used by
// bulk_kernels.cu alone.
#pragma once

#include "backend/cuda/tile.h"

namespace whippet::cuda {

// Up to 8 rows, logits too, with at most ring_bytes of weights under way in a block; false where the device
// or the shapes do not suit it.
bool linear_stream(const Queue& queue, DType dtype, const TileArgs& args, int32_t ring_bytes);

}  // namespace whippet::cuda
