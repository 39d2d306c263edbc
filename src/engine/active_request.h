// From what was asked to what runs: checks a request and builds its sequences, on the thread that submits it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "engine/limits.h"
#include "engine/model_facts.h"
#include "engine/sequence.h"
#include "text/tokenizer.h"

namespace whippet {

struct RequestRules {
  CoreLimits limits;
  ModelFacts facts;
  const Tokenizer* tokenizer = nullptr;
  uint64_t seed = 0;  // of requests that bring none
  // RoPE frequencies of a sequence of up to that many tokens.
  std::function<std::vector<float>(int32_t length)> frequencies = {};
  std::vector<float> usual_frequencies = {};  // of a short sequence; others never share blocks with these
};

// Errors name the field and the value, or prompt, requested and limit.
Result<std::unique_ptr<ActiveRequest>> make_active_request(CoreRequest asked, uint64_t id,
                                                           const RequestRules& rules, Clock::time_point now);

}  // namespace whippet
