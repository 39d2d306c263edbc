// How the codec's readers say no: an ApiError with the field and the value in it. Internal to openai.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "openai/api.h"

namespace whippet::openai {

using Refusal = std::optional<ApiError>;  // empty: nothing is wrong

// 400s. `expected` goes on after "expected": "a number".
ApiError wrong_type(std::string param, std::string_view expected, const nlohmann::ordered_json& found);
ApiError wrong_value(std::string param, std::string message);
ApiError missing(std::string param, std::string message);
// Understood, and not to be had here.
ApiError unsupported(std::string param, std::string message);
// What a function of the context threw, or a Result: the message opens with a field's name, or is about
// `param`.
ApiError refused(const Error& error, std::string_view param);

// {"error": ...} of `status` without a kind of its own is a "server_error" from 500 on.
std::string type_of_status(int status);
// The value as a message shows it: short, well-formed.
std::string shown(const nlohmann::ordered_json& value);

}  // namespace whippet::openai
