// Where the arrays of a packed weight lie in its storage: codes, scale, min, order, bias, one behind the
// other. Used by the packer, and to check weights that were packed by another process.
#pragma once

#include <cstddef>

#include "backend/linear_weight.h"
#include "base/error.h"

namespace whippet::cpu {

// Part of CpuBackend::packed_form: one more whenever pack_linear lays out anything differently.
constexpr int kPackedLayout = 1;

struct PackedLayout {
  size_t panel_bytes = 0;                          // of the codes of one panel
  size_t scale = 0, min = 0, order = 0, bias = 0;  // where each begins, whether it is there or not
  size_t bytes = 0;
};

// From out, columns, group, kind and the types alone; the flags say which arrays there are. pairs: whether
// bf16 codes are in pairs.
PackedLayout packed_layout(const LinearWeight& w, bool pairs, bool min, bool order, bool bias);

// Whether kernels can read the weight without leaving its storage: every field is one that pack_linear gives,
// every array is where and as long as they say, every column of `order` exists. kCorrupt names the field.
Status check_packed(const LinearWeight& weight, bool pairs);

}  // namespace whippet::cpu
