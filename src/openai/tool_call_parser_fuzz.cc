// Any bytes as an answer with calls, cut anywhere: no crash, and no cut changes what is found. The first byte
// chooses the format, the second how the text is cut.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "openai/answer_parser.h"

namespace whippet::openai {
namespace {

AnswerParts parse(const AnswerFormat& format, std::string_view text, size_t step) {
  AnswerParser parser(format);
  AnswerParts parts;
  for (size_t at = 0; at < text.size(); at += step) parser.push(text.substr(at, step), {1}, false, parts);
  parser.push("", {}, true, parts);
  return parts;
}

}  // namespace
}  // namespace whippet::openai

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace whippet::openai;
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  AnswerFormat format{.may_think = true, .thinking = static_cast<Thinking>(data[0] / 3 % 3)};
  constexpr const char* kNames[] = {"hermes", "internlm", "llama3_json"};
  format.tools = {.format = find_tool_format(kNames[data[0] % 3]), .names = {"f"}};
  const AnswerParts whole = parse(format, text, size);
  const AnswerParts cut = parse(format, text, 1 + data[1] % 16);
  WH_CHECK(whole.reasoning == cut.reasoning && whole.content == cut.content && whole.calls == cut.calls);
  for (const ToolCall& call : whole.calls) WH_CHECK(call.name == "f" && call.arguments.front() == '{');
  return 0;
}
