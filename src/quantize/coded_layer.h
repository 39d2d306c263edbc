// A linear layer in codes, as GPTQ's files have it, and the plain way to get there: rounding to nearest. Used
// by GPTQ, which chooses the codes better, and by the quantizer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/checkpoint.h"
#include "model/code_grid.h"

namespace whippet {

// value[o, i] = scale[o, g] * (code[o, i] - zero[o, g]) with g = g_idx[i].
struct CodedLayer {
  int32_t out = 0;
  int32_t in = 0;
  int32_t bits = 0;
  int32_t group = 0;            // inputs of one group; the last may have fewer
  std::vector<uint8_t> codes;   // [out, in]
  std::vector<uint16_t> scale;  // [out, groups] fp16
  std::vector<uint8_t> zero;    // [out, groups]; at least 1 where the grid is not symmetric
  std::vector<int32_t> g_idx;   // [in]

  CodedLayer(int32_t num_outputs, int32_t num_inputs, const CodeGrid& grid);
  int32_t groups() const { return (in + group - 1) / group; }
};

// The grid of one group as files can hold it: fit_group's with a scale rounded to fp16 and a zero point of at
// least 1. Version 1 files store zero points less one, and readers differ on what a stored -1 is.
GroupFit storable_fit(std::span<const float> values, const CodeGrid& grid);

// weight [out, in].
CodedLayer round_layer(std::span<const float> weight, int32_t out, int32_t in, const CodeGrid& grid,
                       int32_t num_threads);

std::vector<float> decode_layer(const CodedLayer& layer);  // [out, in]

// One tensor that owns its bytes.
struct OwnedTensor {
  TensorView view;  // its data are those of `bytes`
  std::vector<std::byte> bytes;
};

// kInvalidArgument where `in` or `out` codes of so many bits do not fill whole 32-bit words.
Status check_packable(const std::string& name, int32_t out, int32_t in, int32_t bits);
// name.qweight, .qzeros (version 1), .scales and .g_idx. The layer must be packable.
std::vector<OwnedTensor> pack_layer(const std::string& name, const CodedLayer& layer);

}  // namespace whippet
