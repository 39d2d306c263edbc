// Finds the calls of functions in the text of an answer as it streams. A call is given once it is whole, so
// nothing that has been said is ever taken back; what looks like a call and is none (no JSON, cut off at the
// token limit, a function that was not offered) stays text. How the text is cut into pieces does not matter.
// Internal to openai; one an answer, one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "openai/tool_format.h"

namespace whippet::openai {

struct ToolCall {
  std::string name;
  std::string arguments;  // the text of a JSON object
  bool operator==(const ToolCall&) const = default;
};

// What may be called.
struct ToolOffer {
  const ToolFormat* format = nullptr;  // nullptr: no calls are looked for
  std::vector<std::string> names = {};
  bool several = true;  // false: calls after an answer's first are dropped
};

class ToolCallParser {
 public:
  explicit ToolCallParser(const ToolOffer& offer);  // which must outlive the parser

  // Appends what `text` makes certain. White space next to a call belongs to neither; texts
  // before and behind one stand on lines of their own.
  void push(std::string_view text, std::string& content, std::vector<ToolCall>& calls);
  // The answer has ended: what is held back is text.
  void finish(std::string& content);

 private:
  enum class State : uint8_t { kText, kCall, kAfterCall };
  enum class Scan : uint8_t { kMore, kWhole, kBroken };

  bool step_text(std::string& content);
  bool step_call(std::string& content, std::vector<ToolCall>& calls);
  bool step_after_call();
  void open_call(size_t begin, size_t size, std::string& content);
  Scan scan(char byte);
  bool may_be_bare() const;
  void say(std::string_view text, std::string& content);
  void take_call(std::vector<ToolCall> found, std::vector<ToolCall>& calls);

  const ToolOffer* offer_;
  State state_ = State::kText;
  std::string held_;   // not looked at, or undecided
  std::string raw_;    // of the call that is being read, from its beginning
  size_t object_ = 0;  // where the JSON begins in raw_
  std::string space_;  // white space that is text once more text follows
  bool at_start_ = true;
  bool said_something_ = false;
  bool after_call_ = false;
  bool bare_ = false;
  int32_t calls_ = 0;
  // Of the JSON that is being read.
  int32_t depth_ = 0;
  bool in_string_ = false, escaped_ = false, checked_ = false;
};

}  // namespace whippet::openai
