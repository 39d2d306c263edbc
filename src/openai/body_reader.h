// From the bytes of a body to JSON, within bounds: what a client sends can cost neither unbounded memory nor
// time. Internal to openai.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "openai/api.h"

namespace whippet::openai {

// Keys in the order in which the client wrote them: templates show them so.
using Json = nlohmann::ordered_json;

// The object that the body is. A 400 says at which byte the JSON or the UTF-8 is wrong, which key is there
// twice, or which bound it breaks (100 levels, 4096 keys an object, four million values).
Outcome<Json> read_body(std::string_view body);

}  // namespace whippet::openai
