// JSON written by hand into a string that is reused: what the token path needs and no more. Internal to
// openai.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace whippet::openai {

// In quotes. `text` is well-formed UTF-8. Everything that some client may take for the end of a line is
// escaped (U+0085, U+2028 and U+2029 too), so that an event of a stream stays one line.
void append_json_string(std::string& out, std::string_view text);
// The same without the quotes.
void append_json_escaped(std::string& out, std::string_view text);

void append_number(std::string& out, int64_t value);
// The shortest decimal that is this float; -9999 for -infinity and NaN, which JSON does not have.
void append_logprob(std::string& out, float value);

}  // namespace whippet::openai
