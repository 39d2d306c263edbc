// What the engine is asked: a prompt as ids and how to answer it, with no protocol and no text in it.
// Made by the api, checked and taken by EngineCore::submit.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "whippet/sampling_params.h"

namespace whippet {

// Which tokens may come next. Called on the engine thread, once a drawn token, with what the answer has so
// far (and, where a mask left no choice, what it will have in any case); `mask` [ceil(vocab / 32)] arrives
// all ones, bit 1: allowed. False: everything is allowed and the mask is ignored. Must not block.
using TokenMask =
    std::function<bool(int32_t choice, std::span<const int32_t> output, std::span<uint32_t> mask)>;

struct CoreRequest {
  std::vector<int32_t> prompt;
  SamplingParams params;   // already merged with the checkpoint's defaults
  int32_t priority = 0;    // lower runs first: one level is worth ten seconds of waiting
  double timeout_s = 0;    // from submission, time in the queue included; 0: none
  std::string cache_salt;  // requests share cached blocks only with those of the same salt
  TokenMask token_mask;    // may be empty
};

}  // namespace whippet
