// How deep a JSON text nests, found without reading it: what is too deep is not even parsed. Used wherever
// JSON comes from outside.
#pragma once

#include <string_view>

namespace whippet {

// The most brackets outside of strings that are open at once. Counts too much in what is no JSON, which the
// parser refuses anyway.
int json_nesting(std::string_view text);

}  // namespace whippet
