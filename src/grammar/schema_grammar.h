// From a JSON schema to a grammar of the JSON texts that are valid against it. Our own walk: a keyword is
// either held to, or refused by name and place; docs/server.md lists them.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "grammar/rules.h"

namespace whippet::grammar {

constexpr size_t kMostSchemaBytes = 128 * 1024;
constexpr int kMostSchemaDepth = 64;

// The expression of the root, whose rules it adds to `rules`. Members come in the order of `properties`, a
// member that is not named only where `additionalProperties` allows it, or where nothing is said of members
// at all. kInvalidArgument names the keyword, its place and what to do. Any thread.
Result<std::string> schema_to_grammar(std::string_view json_schema, bool white_space, Rules& rules);

// Any JSON object.
std::string object_grammar(bool white_space, Rules& rules);

}  // namespace whippet::grammar
