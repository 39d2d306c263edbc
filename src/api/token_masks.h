// From structured_outputs of a request to the mask of each of its tokens. Owned by the public Engine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "engine/request.h"
#include "text/tokenizer.h"
#include "whippet/sampling_params.h"

namespace whippet {

class TokenMasks {
 public:
  // The tokenizer must outlive it. vocab_used: ids from here on are padding.
  TokenMasks(const Tokenizer& tokenizer, int32_t vocab_used, std::vector<int32_t> eos_ids);
  ~TokenMasks();

  // The mask of one request, whose answers end where the grammar does: it resets ignore_eos. Empty where
  // nothing is asked. Compiles the grammar or waits for it, so it may take a while: any thread but the
  // engine's.
  Result<TokenMask> make(SamplingParams& params);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace whippet
