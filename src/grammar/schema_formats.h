// JSON schema's `format` as regular expressions: narrower than the standards they stand for, so that every
// text they give is valid by them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "grammar/schema_reader.h"

namespace whippet::grammar {

// nullopt: the format says nothing about the text (binary, password). An error names the formats that are
// known.
Result<std::optional<std::string_view>> format_pattern(const SchemaAt& place, const std::string& format);

}  // namespace whippet::grammar
