// Reading what quantised formats store: numbers in several types, codes packed into 32-bit words, and the
// config's word on group sizes. Used by the formats.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/checkpoint.h"

namespace whippet {

template <class T>
T stored_at(const TensorView& tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

bool is_float_type(StorageType type);                     // F32, F16 or BF16
float float_at(const TensorView& tensor, int64_t index);  // of such a tensor

// Code `index` of a stream of codes of `bits` <= 8 bits, lowest bits first; word(i) is its 32-bit word i.
template <class Word>
uint32_t packed_code(const Word& word, int64_t index, int32_t bits) {
  const int64_t bit = index * bits;
  const auto shift = static_cast<int32_t>(bit % 32);
  uint64_t window = word(bit / 32);
  if (shift + bits > 32) window |= static_cast<uint64_t>(word(bit / 32 + 1)) << 32;
  return static_cast<uint32_t>(window >> shift) & ((1u << bits) - 1);
}

// A tensor that must have this many dimensions, each of 1 to 2^31 - 1. kCorrupt says what was found.
Result<const TensorView*> require_dims(const Checkpoint& checkpoint, const std::string& name, size_t dims);
// The same with a float type.
Result<const TensorView*> require_floats(const Checkpoint& checkpoint, const std::string& name, size_t dims);

// Inputs that share a scale where `in` of them have `groups` scales: from the shapes where they leave no
// doubt, else from the config. kCorrupt where the two do not go together.
Result<int32_t> group_size(const Checkpoint& checkpoint, const std::string& tensor, int64_t in,
                           int64_t groups);

// The group of each of `in` inputs, from a tensor I32 [in] that says it. kCorrupt where one is in no group.
Result<std::vector<int32_t>> read_group_of_input(const TensorView& tensor, int32_t groups);

// config.json's quantization_config, an object; an empty one where there is none.
const nlohmann::json& quantization_config(const Checkpoint& checkpoint);

}  // namespace whippet
