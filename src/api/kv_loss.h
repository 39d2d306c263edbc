// What a KV cache of 8 bits costs a model: measured on a short text before the model serves. Keys of some
// models have a few channels far above the others, whose rounding then drowns those; such a model is refused.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "api/quality.h"
#include "backend/backend.h"
#include "base/error.h"
#include "model/loader.h"
#include "text/tokenizer.h"

namespace whippet {

// The largest mean divergence of the next token that is served, in nats.
constexpr double kMostKvLoss = 0.05;

// The tokens that it is measured on: a text in English and Chinese, numbers and code; without a tokenizer a
// fixed sequence of ids. No more than the model's context holds; at least 2, or none.
std::vector<int32_t> kv_canary(const Tokenizer* tokenizer, const ModelSpec& spec);

// How far the model with its K and V in `kept` is from itself with them in `reference`, over `ids`.
Quality measure_kv_loss(const Model& model, Backend& backend, std::span<const int32_t> ids, DType kept,
                        DType reference);

// kUnsupported with the figures where an int8 cache in place of `reference` costs more than kMostKvLoss; with
// `force` a warning.
Status check_kv_loss(const Model& model, Backend& backend, const Tokenizer* tokenizer, DType reference,
                     bool force);

}  // namespace whippet
