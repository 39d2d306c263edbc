// From regular expressions to grammars: the part of Python's and JavaScript's syntax that describes sets of
// texts. Used for `regex` and for JSON schema's `pattern` and `format`.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace whippet::grammar {

enum class RegexPlace {
  kText,        // the answer itself
  kJsonString,  // between the quotes of a JSON string: what JSON cannot hold plainly is escaped or left out
};

constexpr int64_t kMostRepeats = 10'000;  // of {n,m}, minLength, minItems and their like, and of nested ones
// The same of a group that holds classes, over whose copies the library would take seconds a token.
constexpr int64_t kMostGroupRepeats = 128;

// An EBNF expression of the texts that the whole expression matches; ^ at its beginning and $ at its end mean
// nothing more. kInvalidArgument names what is wrong or no regular language (look-around, back references),
// and where. In a JSON string, a class or dot leaves out the characters that JSON escapes where it has
// others.
Result<std::string> regex_to_grammar(std::string_view regex, RegexPlace place);

}  // namespace whippet::grammar
