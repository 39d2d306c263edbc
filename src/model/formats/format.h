// How linear layers are stored in checkpoints. Each format is one file and one row of formats(): it says
// whether a layer is stored its way, what the layer decodes to, and decodes rows of it. Used by the loader.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "backend/linear_weight.h"
#include "base/error.h"
#include "model/checkpoint.h"

namespace whippet {

// What a layer decodes to, known before anything is decoded.
struct LinearLayout {
  std::string tensor;  // the layer's main tensor, for messages
  CanonicalLinear::Codes codes = CanonicalLinear::Codes::kF32;
  int32_t out = 0;
  int32_t in = 0;
  int32_t group = 0;  // as in CanonicalLinear; dense: 0
  bool has_min = false;
  std::vector<int32_t> g_idx;         // as in CanonicalLinear
  std::span<const std::byte> stored;  // the codes where the file holds them as they are, else empty

  // Rows of both can stand in one CanonicalLinear.
  bool agrees_with(const LinearLayout& other) const {
    return codes == other.codes && in == other.in && group == other.group && has_min == other.has_min &&
           g_idx == other.g_idx;
  }
};

// Where decoded rows go, in CanonicalLinear's layout; scale and min are not touched by formats without them.
struct RowTarget {
  std::byte* codes = nullptr;  // [rows, in]
  float* scale = nullptr;      // [rows, num_groups]
  float* min = nullptr;        // [rows, num_groups]
};

struct Format {
  const char* name;
  // `layer` is the tensor name without its last part: "model.layers.0.mlp.up_proj".
  bool (*holds)(const Checkpoint& checkpoint, const std::string& layer);
  Result<LinearLayout> (*layout)(const Checkpoint& checkpoint, const std::string& layer);
  // Decodes row rows[i] of the layer into row i of the target. The layout must have succeeded.
  void (*decode)(const Checkpoint& checkpoint, const std::string& layer, std::span<const int32_t> rows,
                 const RowTarget& target);
};

Format awq_format();
Format bitsandbytes_4bit_format();
Format bitsandbytes_int8_format();
Format compressed_tensors_format();
Format dense_format();
Format fp8_format();
Format gguf_format();
Format gptq_format();

std::span<const Format> formats();
// Whether the checkpoint has a layer of that name, stored in whatever way.
bool stores_layer(const Checkpoint& checkpoint, const std::string& layer);
// kNotFound: the checkpoint has no such layer; kUnsupported: it has, in a way that no format reads.
Result<const Format*> find_format(const Checkpoint& checkpoint, const std::string& layer);
// The names of the formats that its layers are stored in, each once.
std::vector<std::string> stored_formats(const Checkpoint& checkpoint);
// What only the config tells: kUnsupported where it says that the codes are arranged in a way, or the
// activations changed by a transform, that no format knows. How a layer is stored its tensors tell.
Status check_quantization(const Checkpoint& checkpoint);

// Bytes of one code: what a row of [in] codes takes is in times this.
size_t code_bytes(CanonicalLinear::Codes codes);
// The tensor `layer`.weight as [out, in]; kCorrupt where it is no matrix.
Result<LinearLayout> matrix_layout(const Checkpoint& checkpoint, const std::string& layer);

}  // namespace whippet
