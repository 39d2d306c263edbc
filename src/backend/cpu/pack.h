// How the CPU kernels want weights. A panel is 16 output rows; the last one is filled with zero rows.
//   dense, int8  codes [panels][columns][16]
//   int4         codes [panels][groups][ceil(group / 8)][16] of uint32: bits 4j of dword [i] hold column 8i +
//   j
//                of the group
//   scale, min   [panels][groups][16] fp32
// so that one vector holds 16 rows of one column and nothing is ever summed across lanes. Columns of
// act-order weights are sorted by group at pack time and `order` gathers the inputs; where the groups are not
// all of one size (a shard), pads with zero codes even them out.
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

// kCorrupt where sizes or group indices do not fit together.
Result<LinearWeight> pack_linear(const CanonicalLinear& weight, ComputeType compute, ThreadPool& pool);

}  // namespace whippet::cpu
