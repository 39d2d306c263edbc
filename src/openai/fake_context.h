// A Context without an engine, for tests, the fuzzer and the benchmark: a token is a byte, 256 is
// <|im_start|>, 257
// <|im_end|>, and chats are ChatML with a default system message.
#pragma once

#include "openai/api.h"

namespace whippet::openai {

constexpr int32_t kFakeVocab = 258;
constexpr int32_t kFakeStart = 256;
constexpr int32_t kFakeEnd = 257;

// Serves "tiny" and "other"; 512 tokens of context. chat_template: instead of the usual one, which writes
// tools, thinking and what else the tests ask for. more_special: control tokens from 258 on.
Context fake_context(const char* chat_template = nullptr, const std::vector<std::string>& more_special = {});

}  // namespace whippet::openai
