// How models write the calls of functions: one row a format. Used by what shows tools to a model, reads its
// calls, and forces them. Internal to openai.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace whippet::openai {

// A call is `open`, an object {"name": ..., `arguments`: {...}}, `close`.
struct ToolFormat {
  std::string_view name;       // vLLM's
  std::string_view open;       // a call may begin anywhere
  std::string_view close;      // may be missing at the end of an answer
  std::string_view arguments;  // the key
  bool bare = false;           // an answer that is the object alone is a call too
  // Between the parts, as models write them: open, between, object, between, close.
  std::string_view between;
  std::string_view separator;  // between two calls; empty: one call an answer
  std::string_view end_token;  // ends an answer with calls, where it is a token
};

// nullptr: there is none of this name.
const ToolFormat* find_tool_format(std::string_view name);
std::vector<std::string> tool_format_names();

}  // namespace whippet::openai
