// A template cut into tokens: text between the tags, and names, literals and operators inside them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace whippet::jinja {

enum class TokenType {
  kText,
  kOutputBegin,  // {{
  kOutputEnd,    // }}
  kBlockBegin,   // {%
  kBlockEnd,     // %}
  kName,
  kString,  // text: without quotes and escapes
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  std::string text;
  int line = 0;
};

// White space is treated as with trim_blocks and lstrip_blocks: a line with nothing but a block leaves no
// trace. Comments are dropped and {% raw %} becomes text. The last token is kEnd. Errors begin with the line:
// "line 3: ...".
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace whippet::jinja
