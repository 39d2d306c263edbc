#include "cli/bench_answer.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace whippet {
namespace {

using nlohmann::json;

constexpr size_t kLongestRefusal = 4096;  // bytes that are kept
constexpr int kOk = 200;

// The member of an object, or null.
const json& member(const json& object, const char* name) {
  static const json kNull;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? kNull : *found;
}

bool has_text(const json& value) { return value.is_string() && !value.get_ref<const std::string&>().empty(); }

bool says_something(const json& event) {
  const json& choices = member(event, "choices");
  if (!choices.is_array() || choices.empty()) return false;
  const json& delta = member(choices.front(), "delta");
  return has_text(member(choices.front(), "text")) || has_text(member(delta, "content")) ||
         has_text(member(delta, "reasoning_content")) || has_text(member(delta, "reasoning"));
}

int32_t count(const json& value) {
  return value.is_number_integer() && value >= 0 && value <= (1 << 30) ? value.get<int32_t>() : 0;
}

// {"error": {"message": ...}}, or the text itself.
std::string message_of(const std::string& body) {
  const json parsed = json::parse(body, nullptr, false);
  const json& error = member(parsed, "error");
  for (const json* message : {&member(error, "message"), &member(parsed, "message"), &error})
    if (message->is_string()) return message->get<std::string>();
  return body;
}

}  // namespace

void BenchAnswerReader::take(int status, std::string_view bytes, double now) {
  if (status != kOk) {
    refusal_ += bytes.substr(0, kLongestRefusal - std::min(kLongestRefusal, refusal_.size()));
    return;
  }
  const Status read = events_.feed(bytes, [&](std::string_view data) { take_event(data, now); });
  if (!read.ok() && answer_.error.empty()) {
    answer_.error = "malformed answer";
    answer_.detail = read.error().message;
  }
}

void BenchAnswerReader::take_event(std::string_view data, double now) {
  if (!answer_.error.empty()) return;
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const json event = json::parse(data, nullptr, false);
  if (event.is_discarded()) {
    answer_.error = "malformed answer";
    answer_.detail = "an event is no JSON";
    return;
  }
  if (!member(event, "error").is_null()) {
    answer_.error = "error in the stream";
    answer_.detail = message_of(std::string(data));
    return;
  }
  const json& usage = member(event, "usage");
  if (usage.is_object()) {
    has_usage_ = true;
    answer_.prompt_tokens = count(member(usage, "prompt_tokens"));
    answer_.output_tokens = count(member(usage, "completion_tokens"));
  }
  if (!says_something(event)) return;
  if (pieces_++ == 0) {
    answer_.first_token = now;
  } else {
    answer_.gaps.push_back(now - answer_.last_token);
  }
  answer_.last_token = now;
}

BenchAnswer BenchAnswerReader::finish(int status, double now, std::string error, std::string detail) {
  answer_.end = now;
  if (!has_usage_) answer_.output_tokens = pieces_;
  if (!error.empty()) {
    answer_.error = std::move(error);
    answer_.detail = std::move(detail);
  } else if (status != kOk) {
    answer_.error = fmt::format("HTTP {}", status);
    answer_.detail = message_of(refusal_);
  } else if (answer_.error.empty() && !done_) {
    answer_.error = "answer cut off";
    answer_.detail = "the stream ended without [DONE]";
  } else if (answer_.error.empty() && pieces_ == 0) {
    answer_.error = "empty answer";
  }
  return std::move(answer_);
}

}  // namespace whippet
