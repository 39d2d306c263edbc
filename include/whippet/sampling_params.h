// How tokens are drawn and when an answer ends. Names, defaults and ranges are vLLM's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "whippet/structured_outputs.h"

namespace whippet {

struct SamplingParams {
  int32_t n = 1;                      // answers of one request
  float temperature = 1;              // 0: greedy
  float top_p = 1;                    // (0, 1]
  int32_t top_k = 0;                  // 0 or -1: all
  float min_p = 0;                    // [0, 1]
  float repetition_penalty = 1;       // (0, ...)
  float presence_penalty = 0;         // [-2, 2]
  float frequency_penalty = 0;        // [-2, 2]
  std::optional<uint64_t> seed;       // unset: the engine draws one
  std::optional<int32_t> max_tokens;  // unset: what is left of the context
  int32_t min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool include_stop_str_in_output = false;
  bool ignore_eos = false;
  bool skip_special_tokens = true;
  std::vector<int32_t> kept_special_token_ids;  // but for these, which are in the text all the same
  std::optional<int32_t> logprobs;              // of the drawn tokens, and of that many of the most likely
  std::optional<int32_t> prompt_logprobs;       // the same for the prompt
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::optional<std::vector<int32_t>> allowed_token_ids;
  std::vector<int32_t> banned_token_ids;
  std::optional<StructuredOutputs> structured_outputs;

  bool operator==(const SamplingParams&) const = default;
};

}  // namespace whippet
