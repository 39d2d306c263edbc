// Bounds of grammars that come from outside as text: the library compiles whatever it is given, in whatever
// time that takes, so what is large is refused before.
#pragma once

#include <string_view>

#include "base/error.h"

namespace whippet::grammar {

constexpr size_t kMostRules = 4000;
constexpr size_t kMostGrammarBytes = 512 * 1024;

// Size, depth of parentheses, repetition counts (nested ones multiplied); rules and `root` are the library's
// to check.
Status check_ebnf(std::string_view text);

}  // namespace whippet::grammar
