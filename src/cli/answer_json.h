// Answers as JSON, one object a request.
#pragma once

#include <nlohmann/json.hpp>

#include "whippet/request.h"

namespace whippet {

// {"text", "token_ids", "finish_reason", "stop_reason"?, "logprobs"?, "usage"}; with several answers they
// stand in a list "answers". A request that failed is {"error"}.
nlohmann::ordered_json answer_to_json(const RequestOutput& output);

}  // namespace whippet
