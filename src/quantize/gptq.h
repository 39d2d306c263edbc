// GPTQ (Frantar, Ashkboos, Hoefler and Alistarh 2023): codes are chosen input by input, and what rounding one
// input changes in the layer's outputs is taken back by the inputs that are not rounded yet.
#pragma once

#include <cstdint>
#include <span>

#include "quantize/coded_layer.h"
#include "quantize/factor.h"

namespace whippet {

// weight [out, factor.size]. Groups are runs of the factor's order.
CodedLayer gptq_layer(std::span<const float> weight, int32_t out, const InverseFactor& factor,
                      const CodeGrid& grid, int32_t num_threads);

// trace(D H D^T) with D = a - b, both [out, in]: the squared change of the layer's outputs over the inputs
// that H [in, in] sums up. b may be empty: 0.
double output_error(std::span<const float> a, std::span<const float> b, std::span<const float> moments,
                    int32_t in, int32_t num_threads);

}  // namespace whippet
