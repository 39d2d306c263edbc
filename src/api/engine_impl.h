// What stands behind the public Engine; shared with LLM, which needs a request's prompt ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "api/loaded_model.h"
#include "api/prompt.h"
#include "api/streamer.h"
#include "whippet/whippet.h"

namespace whippet {

struct Engine::Impl {
  ~Impl();

  // The request's prompt, or why it has none. Counts a refusal.
  Result<Prompt> prepare(const Request& request) const;
  Result<uint64_t> submit(Prompt prompt, Request request, EventCallback on_event);

  LoadedModel model;
  std::unique_ptr<Streamer> streamer;
};

// JSON in which bytes that are no UTF-8 are replaced.
std::string dump_json(const nlohmann::ordered_json& value);

}  // namespace whippet
