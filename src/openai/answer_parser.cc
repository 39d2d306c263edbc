#include "openai/answer_parser.h"

#include <algorithm>

namespace whippet::openai {

AnswerParser::AnswerParser(const AnswerFormat& format)
    : format_(&format), thinking_(format.thinking), calls_(format.tools) {}

void AnswerParser::push(std::string_view text, const std::vector<int32_t>& ids, bool finished,
                        AnswerParts& parts) {
  const bool thought = thinking_.thinking();
  const size_t reasoning_before = parts.reasoning.size();
  answer_.clear();
  thinking_.push(text, parts.reasoning, answer_);
  if (thought) {
    // Up to the token that ends the thinking.
    const auto close = std::find(ids.begin(), ids.end(), format_->think_close_token);
    const auto end = close != ids.end() ? close + 1 : ids.end();
    reasoning_tokens_ += static_cast<int32_t>(end - ids.begin());
  }
  if (finished) thinking_.finish(parts.reasoning, answer_);
  if (format_->hides_thinking) parts.reasoning.resize(reasoning_before);
  if (format_->tools.format == nullptr) {
    parts.content += answer_;
    return;
  }
  calls_.push(answer_, parts.content, parts.calls);
  if (finished) calls_.finish(parts.content);
}

}  // namespace whippet::openai
