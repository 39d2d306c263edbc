// Escapes in the string literals of templates, as Python reads them.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace whippet::jinja {

// The text between the quotes with its escapes replaced. An unknown escape stays as it is.
Result<std::string> unescape(std::string_view literal);

}  // namespace whippet::jinja
