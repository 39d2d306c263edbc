// The products of integers of a set that shares everything else with another one.
#include "backend/cpu/kernel_functions.h"
#include "simd_dot.h"

namespace whippet::cpu::WHIPPET_ISA {

extern const DotKernels kDotKernels;
const DotKernels kDotKernels = {.linear_coded = {linear_coded_int8, linear_coded_int4},
                                .panels = kDotPanels,
                                .few_rows = kDotRows > 1 ? kDotRows - 1 : 1,
                                .few_panels = dot_panels(1),
                                .round_inputs = round_inputs,
                                .burst = dot_burst};

}  // namespace whippet::cpu::WHIPPET_ISA
