// Calls that a grammar holds a model to. Internal to openai.
#pragma once

#include "openai/tool_fields.h"
#include "openai/tool_format.h"
#include "whippet/sampling_params.h"

namespace whippet::openai {

// What the answer must look like, set in `params`: calls and nothing else where one is forced; where the
// model chooses, and a function is "strict", text with calls that follow their schemas. A response_format
// that params ask for stays what the answer may be instead of calls. keeps_open: calls of this format begin
// with text that a grammar can see; those that begin with a control token are not held to anything unless
// forced.
void add_tool_grammar(const ToolFields& fields, const ToolFormat& format, bool keeps_open,
                      SamplingParams& params);

// Compiles it, see check_structured_outputs. A schema that is wrong is named: tools[1].function.parameters.
Refusal check_tool_grammar(const Context& context, const ToolFields& fields, const StructuredOutputs& asked);

}  // namespace whippet::openai
