// A model of a known shape with random weights, made in memory: speed does not depend on their values. For
// `whippet bench latency shape:NAME`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "model/loader.h"

namespace whippet {

// How the matrices are kept.
struct ShapeForm {
  CanonicalLinear::Codes codes = CanonicalLinear::Codes::kBF16;
  int32_t group = 0;  // inputs that share a scale; 0: dense
  bool symmetric =
      false;  // a code of 8 stands for 0; otherwise each group of 4 bits has a minimum of its own
};

// quantization "" or "none": dense in dtype, where "auto" is bfloat16; "int8" or "int4": coded, `group`
// inputs a scale. kInvalidArgument lists what there is.
Result<ShapeForm> parse_shape_form(const std::string& dtype, const std::string& quantization, int32_t group,
                                   bool minima);

// Of "qwen2.5-0.5b" and its like; kInvalidArgument lists what there is.
Result<ModelSpec> find_shape(std::string_view name);

// The head is kept in a form of its own where it is not the embedding.
Result<Model> make_shape(const ModelSpec& spec, const ShapeForm& body, const ShapeForm& head,
                         Backend& backend);

// Multiplications and additions, attention included: of one token with its logits at the beginning of a
// context, and of a prompt with the logits of its last token.
double token_operations(const ModelSpec& spec);
double prompt_operations(const ModelSpec& spec, int32_t length);
// Of a whole request: what is computed of its prompt behind the first `cached` tokens, and its answer. The
// last token of the answer is never an input.
double request_operations(const ModelSpec& spec, int32_t cached, int32_t prompt_len, int32_t output_len);

}  // namespace whippet
