#include "openai/answer_format.h"

#include <algorithm>
#include <string>

#include "openai/tool_grammar.h"

namespace whippet::openai {
namespace {

bool may_think(const Context& context) {
  return context.reasoning_parser == "auto" ? context.knows_thinking : context.reasoning_parser != "none";
}

std::vector<int32_t> ids_of(const Context& context, std::string_view text) {
  return text.empty() ? std::vector<int32_t>() : context.encode(std::string(text), true, false);
}

// -1: it takes several.
int32_t token_of(const Context& context, std::string_view text) {
  const std::vector<int32_t> ids = ids_of(context, text);
  return ids.size() == 1 ? ids.front() : -1;
}

// Whether the text of answers would not show it; then it does from now on.
bool keep_special(const Context& context, std::string_view mark, SamplingParams& params) {
  std::vector<int32_t>& kept = params.kept_special_token_ids;
  const size_t before = kept.size();
  for (const int32_t id : ids_of(context, mark))
    if (context.decode({id}, true).empty() && !context.decode({id}, false).empty()) kept.push_back(id);
  return kept.size() > before;
}

void add_tools(const Context& context, const RenderedChat& chat, AnswerFormat& format,
               SamplingParams& params) {
  const ToolFormat& tools = *chat.tool_format;
  format.tools = {.format = &tools, .names = chat.tools.names, .several = chat.tools.several};
  const bool hidden = keep_special(context, tools.open, params);
  keep_special(context, tools.close, params);
  add_tool_grammar(chat.tools, tools, !hidden, params);
  format.end_token = token_of(context, tools.end_token);
  std::vector<int32_t>& stops = params.stop_token_ids;
  if (format.end_token >= 0 && std::find(stops.begin(), stops.end(), format.end_token) == stops.end())
    stops.push_back(format.end_token);
}

}  // namespace

Thinking thinking_of(const Context& context, std::string_view text, bool goes_on) {
  if (!may_think(context)) return Thinking::kNever;
  if (goes_on) {
    const size_t open = text.rfind(kThinkOpen), close = text.rfind(kThinkClose);
    const bool inside = open != std::string_view::npos && (close == std::string_view::npos || close < open);
    return inside ? Thinking::kOpen : Thinking::kNever;
  }
  const Thinking thinking = thinking_after(text);
  return thinking == Thinking::kMay && context.reasoning_parser == "deepseek_r1" ? Thinking::kOpen : thinking;
}

AnswerFormat answer_format(const Context& context, RenderedChat& chat, SamplingParams& params) {
  AnswerFormat format;
  if (chat.tools.choice != ToolChoice::kNone && context.tool_call_parser != "none")
    add_tools(context, chat, format, params);
  format.may_think = may_think(context);
  format.thinking = chat.thinking;
  if (!format.may_think) return format;
  keep_special(context, kThinkOpen, params);
  keep_special(context, kThinkClose, params);
  format.think_close_token = token_of(context, kThinkClose);
  if (!params.structured_outputs || format.thinking == Thinking::kNever || format.think_close_token < 0)
    return format;
  params.structured_outputs->after = kThinkClose;
  if (format.thinking == Thinking::kMay) {
    // An answer that began without thinking would be held to nothing.
    for (const int32_t id : ids_of(context, "<think>\n")) chat.ids.push_back(id);
    format.thinking = Thinking::kOpen;
  }
  return format;
}

}  // namespace whippet::openai
