// What stands behind the public Engine; shared with LLM, which needs a request's prompt ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "api/loaded_model.h"
#include "api/prompt.h"
#include "api/streamer.h"
#include "api/token_masks.h"
#include "whippet/whippet.h"

namespace whippet {

struct Engine::Impl {
  ~Impl();

  // The request's prompt, or why it has none. Counts a refusal.
  Result<Prompt> prepare(const Request& request) const;
  Result<uint64_t> submit(Prompt prompt, Request request, EventCallback on_event);

  // Once the engine runs: what makes text of its events, and masks of grammars.
  void start();
  Result<TokenMask> make_mask(SamplingParams& params);

  LoadedModel model;
  std::unique_ptr<Streamer> streamer;
  std::unique_ptr<TokenMasks> masks;  // none without a tokenizer
};

// JSON in which bytes that are no UTF-8 are replaced.
std::string dump_json(const nlohmann::ordered_json& value);

}  // namespace whippet
