// Refuses sampling parameters that are out of range, before they reach the engine. Used by
// EngineCore::submit.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "whippet/sampling_params.h"

namespace whippet {

// kInvalidArgument names the field, its value and what is allowed. Ids must be below vocab_used. Stop strings
// need a tokenizer (can_decode).
Status check_sampling(const SamplingParams& params, int32_t vocab_used, bool can_decode);

// The prompt and max_tokens against the context; the message has prompt, requested and limit in tokens.
// params have passed check_sampling.
Status check_lengths(std::span<const int32_t> prompt, const SamplingParams& params, int32_t max_model_len,
                     int32_t vocab_used);

}  // namespace whippet
