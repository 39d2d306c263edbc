// How the CPU kernels want weights. A panel is 16 output rows; the last one is filled with zero rows.
//   dense        codes [panels][columns][16]
//   bf16 pairs   codes [panels][ceil(columns / 2)][16][2], where the machine multiplies pairs
//   int8         codes [panels][groups][group_columns / 4][16][4] of uint8, 128 more than the values
//   int4         codes [panels][groups][group_columns / 8][16][4]: byte j has columns 8i + j and 8i + 4 + j
//   of
//                the group, the first in its lower half
//   scale, min   [panels][groups][16], fp16 where that loses nothing, else fp32; no min but a code_offset
//   where
//                every min is -8 times its scale
// so that one vector holds 16 rows and nothing is ever summed across lanes. group_columns is the group
// rounded up to 8. Columns of act-order weights are sorted by group at pack time and `order` gathers the
// inputs; where the groups are not all of one size (a shard), pads with zero codes even them out.
#pragma once

#include "backend/cpu/thread_pool.h"
#include "backend/linear_weight.h"
#include "base/error.h"

namespace whippet::cpu {

constexpr int32_t kPanelRows = 16;

inline int32_t num_panels(const LinearWeight& w) { return (w.out + kPanelRows - 1) / kPanelRows; }
inline int32_t num_groups(const LinearWeight& w) {
  return w.group > 0 ? (w.columns + w.group - 1) / w.group : 0;
}

inline int32_t num_pairs(const LinearWeight& w) { return (w.columns + 1) / 2; }
constexpr int32_t kGroupStep = 8;
inline int32_t group_columns(const LinearWeight& w) {
  return (w.group + kGroupStep - 1) / kGroupStep * kGroupStep;
}

// pairs: whether bf16 weights are wanted in pairs. kCorrupt where sizes or group indices do not fit together.
Result<LinearWeight> pack_linear(const CanonicalLinear& weight, ComputeType compute, bool pairs,
                                 ThreadPool& pool);

}  // namespace whippet::cpu
