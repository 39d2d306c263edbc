// What the codec's tests share: bodies in, and events made by hand.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "openai/fake_context.h"

namespace whippet::openai {

using nlohmann::json;

class CodecTest : public testing::Test {
 protected:
  // A chat of one message, or a completion of "Hi", with the fields of `more` over it.
  static json chat_body(const json& more = json::object()) {
    json body = {{"model", "tiny"}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
    if (!more.is_null()) body.update(more);  // {} is null
    return body;
  }
  static json prompt_body(const json& more = json::object()) {
    json body = {{"model", "tiny"}, {"prompt", "Hi"}};
    if (!more.is_null()) body.update(more);  // {} is null
    return body;
  }

  // nullptr: refused, and error_ says why.
  std::unique_ptr<Exchange> chat(const json& more) {
    return parsed(parse_chat(context_, chat_body(more).dump(), "id"));
  }
  std::unique_ptr<Exchange> completion(const json& more) {
    return parsed(parse_completion(context_, prompt_body(more).dump(), "id"));
  }
  // The parameters of one that must be taken.
  SamplingParams chat_params(const json& more) { return params(chat(more)); }
  SamplingParams completion_params(const json& more) { return params(completion(more)); }
  // "status param code: message" of one that must be refused.
  std::string chat_error(const json& more) { return refusal(chat(more)); }
  std::string completion_error(const json& more) { return refusal(completion(more)); }
  // The prompt as text.
  std::string prompt_of(const Exchange* exchange, size_t i = 0) {
    if (exchange == nullptr) return "error: " + error_.message;
    return context_.decode(const_cast<Exchange*>(exchange)->requests().at(i).prompt_token_ids, false);
  }

  std::string shown_error() const {
    return std::to_string(error_.status) + " " + error_.param + " " + error_.code + ": " + error_.message;
  }
  std::unique_ptr<Exchange> parsed(Outcome<std::unique_ptr<Exchange>> outcome) {
    if (auto* error = std::get_if<ApiError>(&outcome)) {
      error_ = *error;
      return nullptr;
    }
    return std::get<0>(std::move(outcome));
  }

  Context context_ = fake_context();
  ApiError error_;

 private:
  SamplingParams params(std::unique_ptr<Exchange> exchange) {
    EXPECT_NE(exchange, nullptr) << error_.message;
    return exchange == nullptr ? SamplingParams() : exchange->requests().front().params;
  }
  std::string refusal(const std::unique_ptr<Exchange>& exchange) {
    return exchange == nullptr ? shown_error() : "it was taken";
  }
};

}  // namespace whippet::openai
