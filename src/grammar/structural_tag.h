// xgrammar's structural tags: JSON that says where in an answer which grammar holds. Used by grammar_source.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace whippet::grammar {

// The same structural tag with every JSON schema and regular expression in it replaced by our own grammar of
// it, so that they mean what they mean elsewhere. Takes the older form {"structures", "triggers"} too.
// kInvalidArgument names what is wrong; the form itself is the library's to check.
Result<std::string> checked_structural_tag(std::string_view text);

}  // namespace whippet::grammar
