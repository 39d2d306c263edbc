#include "openai/refusal.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "openai/json_text.h"
#include "text/utf8.h"
#include "whippet/whippet.h"

namespace whippet::openai {
namespace {

constexpr size_t kLongestShown = 60;      // bytes of a wrong value
constexpr size_t kLongestMessage = 2000;  // bytes; what others' messages quote may be as long as the request

// "top_p" of "top_p is 3, but must be ...", "prompt_template" of "prompt_template: there is no ...".
std::string_view first_word(std::string_view message) {
  const size_t end = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789");
  return message.substr(0, end);
}

bool names_a_field(std::string_view word) {
  for (const std::string_view name :
       {"prompt_template", "continue_final_message", "chat_template", "prompt", "messages", "tools",
        "temperature", "logprobs", "n", "stop", "seed", "priority", "timeout"})
    if (word == name) return true;
  // No sentence begins with a word that has an underscore in it.
  return word.find('_') != std::string_view::npos;
}

ApiError bad_request(std::string code, std::string param, std::string message) {
  ApiError error;
  error.code = std::move(code);
  error.param = std::move(param);
  error.message = std::move(message);
  return error;
}

void append_member(std::string& out, std::string_view name, std::string_view value) {
  out += ",\"";
  out += name;
  out += "\":";
  if (value.empty()) {
    out += "null";
  } else {
    std::string repaired;
    append_repaired_utf8(repaired, value);
    append_json_string(out, repaired);
  }
}

}  // namespace

std::string ApiError::body() const {
  std::string out = "{\"error\":{\"message\":";
  std::string repaired;
  append_repaired_utf8(repaired, std::string_view(message).substr(0, kLongestMessage));
  append_json_string(out, repaired);
  append_member(out, "type", type);
  append_member(out, "param", param);
  append_member(out, "code", code);
  return out + "}}";
}

std::string ApiError::sse() const { return "data: " + body() + "\n\n"; }

std::string type_of_status(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    case 504:
      return "timeout_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

ApiError http_error(int status, std::string message, std::string code) {
  return {.status = status,
          .type = type_of_status(status),
          .code = std::move(code),
          .param = "",
          .message = std::move(message)};
}

ApiError submit_error(const Failure& failure) {
  const std::string_view code = failure.code(), message = failure.what();
  if (code == "invalid_argument" || code == "unsupported") {
    ApiError error = refused(make_error(Code::kInvalidArgument, "{}", message), "");
    if (message.find("(max_model_len)") != std::string_view::npos) error.code = "context_length_exceeded";
    return error;
  }
  const int status = code == "not_found"            ? 404
                     : code == "unavailable"        ? 503
                     : code == "resource_exhausted" ? 503
                     : code == "deadline_exceeded"  ? 504
                                                    : 500;
  return http_error(status, std::string(message), std::string(code));
}

std::string shown(const nlohmann::ordered_json& value) {
  using nlohmann::ordered_json;
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  if (value.is_string()) return quote_text(value.get_ref<const std::string&>());
  return value.dump().substr(0, kLongestShown);
}

ApiError wrong_type(std::string param, std::string_view expected, const nlohmann::ordered_json& found) {
  std::string message = fmt::format("{}: expected {}, found {}", param, expected, shown(found));
  return bad_request("invalid_type", std::move(param), std::move(message));
}

ApiError wrong_value(std::string param, std::string message) {
  return bad_request("invalid_value", std::move(param), std::move(message));
}

ApiError missing(std::string param, std::string message) {
  return bad_request("missing_required_parameter", std::move(param), std::move(message));
}

ApiError unsupported(std::string param, std::string message) {
  return bad_request("unsupported_parameter", std::move(param), std::move(message));
}

ApiError refused(const Error& error, std::string_view param) {
  const std::string_view word = first_word(error.message);
  std::string code = error.code == Code::kUnsupported ? "unsupported_parameter" : "invalid_value";
  return bad_request(std::move(code), std::string(names_a_field(word) ? word : param), error.message);
}

}  // namespace whippet::openai
