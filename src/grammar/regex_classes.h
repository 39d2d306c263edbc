// The classes and escapes of regular expressions: \d, \u0041, [a-z]. Used by regex_grammar.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/error.h"
#include "grammar/code_points.h"

namespace whippet::grammar {

// A place in an expression; every reader moves it behind what it read.
struct RegexCursor {
  std::string_view text;
  size_t at = 0;

  bool done() const { return at >= text.size(); }
  char peek(size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }
  bool skip(std::string_view expected);
  Error error(std::string_view why) const;
};

// Of any character but a line end.
CodePoints dot();
// One character of UTF-8 as it stands.
Result<uint32_t> read_character(RegexCursor& cursor);
// Behind a backslash: one character, or a class (\d \D \w \W \s \S).
Result<CodePoints> read_escape(RegexCursor& cursor);
// Behind a [, up to and with its ]; never empty.
Result<CodePoints> read_class(RegexCursor& cursor);

}  // namespace whippet::grammar
