// What the backend has been asked to do and not yet put on the queue. Ops are kept until somebody looks at a
// result, so that neighbours can run as one kernel. What they write is written all the same, but for what a
// later op of those kept writes again before anybody reads it.
#pragma once

#include <variant>
#include <vector>

#include "backend/cuda/kernels.h"

namespace whippet::cuda {

struct FillOp {
  BatchView batch;
  const int32_t* drawn;
  int32_t* token_ids;
};
struct EmbedOp {
  const int32_t* ids;
  const LinearWeight* table;
  Mat out;
};
struct NormOp {
  ConstMat x;
  const float* weight;
  int32_t dim;
  float eps;
  Mat out;
};
struct LinearOp {
  ConstMat x;
  const LinearWeight* weight;
  Mat out;
};
struct AnglesOp {
  BatchView batch;
  Mat cos_sin;
};
struct RopeOp {
  Mat x;
  int32_t head_dim;
  ConstMat cos_sin;
};
struct StoreOp {
  BatchView batch;
  ConstMat k, v;
  KvCacheView cache;
};
struct AttentionOp {
  BatchView batch;
  AttentionArgs args;
};
struct SiluOp {
  ConstMat gate_up;
  Mat out;
};
struct AddOp {
  ConstMat y;
  Mat x;
};
struct GatherOp {
  ConstMat x;
  const int32_t* rows;
  Mat out;
};
using Op = std::variant<FillOp, EmbedOp, NormOp, LinearOp, AnglesOp, RopeOp, StoreOp, AttentionOp, SiluOp,
                        AddOp, GatherOp>;

}  // namespace whippet::cuda
