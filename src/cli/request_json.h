// A request from one JSON line of `whippet generate --jsonl`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "whippet/request.h"

namespace whippet {

struct LineRequest {
  Request request;
  nlohmann::ordered_json id;  // the line's own "id", given back with the answer; null where there is none
};

// {"prompt" | "messages" | "prompt_ids", "tools"?, "chat_template_kwargs"?, "priority"?, "timeout_s"?, "id"?,
// any field of SamplingParams}. `base` holds what the line does not say. An unknown field is an error that
// names it.
Result<LineRequest> read_request(const std::string& line, const Request& base);

}  // namespace whippet
