// What a chat's answers are looked through for, and what that asks of sampling. Internal to openai.
#pragma once

#include <string_view>

#include "openai/answer_parser.h"
#include "openai/chat_request.h"

namespace whippet::openai {

// Of answers to a prompt, or of those that go on with the last message.
Thinking thinking_of(const Context& context, std::string_view text, bool goes_on);

// Sets in `params` which control tokens the parser must see, what ends an answer with calls, and the grammar
// of calls; a grammar of whatever kind holds from the end of the thinking on, which the prompt then opens.
AnswerFormat answer_format(const Context& context, RenderedChat& chat, SamplingParams& params);

}  // namespace whippet::openai
