// How the parts of an answer are written: thinking and calls of functions beside what is said.
#include <sys/random.h>

#include <array>

#include "base/check.h"
#include "openai/exchange_impl.h"
#include "openai/json_text.h"

namespace whippet::openai {
namespace {

// No two calls of a conversation may have the same.
std::string new_call_id() {
  std::array<uint8_t, 12> random;
  WH_CHECK(::getrandom(random.data(), random.size(), 0) == static_cast<ssize_t>(random.size()));
  std::string id = "call_";
  for (const uint8_t byte : random) {
    id += "0123456789abcdef"[byte >> 4];
    id += "0123456789abcdef"[byte & 15];
  }
  return id;
}

// Both names that clients look for: vLLM's "reasoning", and "reasoning_content" of DeepSeek's API.
void append_reasoning(std::string& out, std::string_view text, bool null_if_empty) {
  for (const char* name : {"\"reasoning_content\":", ",\"reasoning\":"}) {
    out += name;
    if (text.empty() && null_if_empty) {
      out += "null";
    } else {
      append_json_string(out, text);
    }
  }
}

// From the id to the open end of the function.
void append_call_head(std::string& out, const ToolCall& call) {
  out += "\"id\":\"" + new_call_id() + "\",\"type\":\"function\",\"function\":{\"name\":";
  append_json_string(out, call.name);
  out += ",\"arguments\":";
}

std::string text_delta(const Answer& answer) {
  std::string delta = "{";
  if (!answer.parts.reasoning.empty()) append_reasoning(delta, answer.parts.reasoning, false);
  if (!answer.text.empty()) {
    delta += delta.size() > 1 ? ",\"content\":" : "\"content\":";
    append_json_string(delta, answer.text);
  }
  return delta + "}";
}

}  // namespace

void Exchange::Impl::append_parts_chunks(size_t choice, std::string& out) const {
  const Answer& answer = answers[choice];
  std::vector<std::string> deltas;
  if (!answer.parts.reasoning.empty() || !answer.text.empty()) deltas.push_back(text_delta(answer));
  for (size_t i = 0; i < answer.parts.calls.size(); ++i) {
    const ToolCall& call = answer.parts.calls[i];
    std::string head = "{\"tool_calls\":[{\"index\":";
    append_number(head, static_cast<int64_t>(answer.calls_before + i));
    std::string rest = head + ",\"function\":{\"arguments\":";
    head += ',';
    append_call_head(head, call);
    append_json_string(rest, call.arguments);
    deltas.push_back(head + "\"\"}}]}");
    deltas.push_back(rest + "}}]}");
  }
  const bool ends_in_call = !answer.parts.calls.empty() && !answer.finish_reason.empty();
  if (deltas.empty() || ends_in_call) deltas.emplace_back("{}");
  for (size_t i = 0; i < deltas.size(); ++i) {
    out += chunk_opening;
    out += "{\"index\":";
    append_number(out, static_cast<int64_t>(choice));
    out += ",\"delta\":";
    out += deltas[i];
    if (i + 1 < deltas.size()) {
      out += ",\"logprobs\":null,\"finish_reason\":null";
    } else {
      append_choice_end(choice, out);
    }
    append_chunk_end(out);
  }
}

void Exchange::Impl::append_message(const Answer& answer, std::string& out) const {
  out += "{\"role\":\"assistant\",\"content\":";
  if (answer.text.empty() && !answer.parts.calls.empty()) {
    out += "null";
  } else {
    append_json_string(out, answer.text);
  }
  out += ",\"refusal\":null";
  if (format.may_think) {
    out += ',';
    append_reasoning(out, answer.parts.reasoning, true);
  }
  if (!answer.parts.calls.empty()) out += ",\"tool_calls\":[";
  for (size_t i = 0; i < answer.parts.calls.size(); ++i) {
    out += i > 0 ? ",{" : "{";
    append_call_head(out, answer.parts.calls[i]);
    append_json_string(out, answer.parts.calls[i].arguments);
    out += "}}";
  }
  out += answer.parts.calls.empty() ? "}" : "]}";
}

}  // namespace whippet::openai
