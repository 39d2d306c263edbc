// The text of a chat's answer in its parts as it streams: thinking, what is said, calls of functions.
// Internal to openai.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "openai/reasoning_parser.h"
#include "openai/tool_call_parser.h"

namespace whippet::openai {

// What the answers of one exchange are looked through for.
struct AnswerFormat {
  bool may_think = false;  // the answers show where their thinking is, if any
  Thinking thinking = Thinking::kNever;
  bool hides_thinking = false;     // include_reasoning is false
  int32_t think_close_token = -1;  // -1: there is none
  ToolOffer tools = {};
  int32_t end_token = -1;  // that Whippet lets end answers with calls; -1: none

  bool has_parts() const { return may_think || tools.format != nullptr; }
};

struct AnswerParts {
  std::string reasoning;
  std::string content;
  std::vector<ToolCall> calls;
};

class AnswerParser {
 public:
  explicit AnswerParser(const AnswerFormat& format);  // which must outlive the parser

  // Appends to `parts` what the next piece makes certain. ids: of its tokens. finished: it is the last.
  void push(std::string_view text, const std::vector<int32_t>& ids, bool finished, AnswerParts& parts);

  int32_t reasoning_tokens() const { return thinking_.opened() ? reasoning_tokens_ : 0; }

 private:
  const AnswerFormat* format_;
  ReasoningParser thinking_;
  ToolCallParser calls_;
  int32_t reasoning_tokens_ = 0;  // if it is thinking
  std::string answer_;            // behind the thinking, of one push
};

}  // namespace whippet::openai
