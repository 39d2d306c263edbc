// What a body asks of the text of its answers: response_format, vLLM's structured_outputs and its older
// guided_* fields. Internal to openai.
#pragma once

#include <string>

#include "openai/body_reader.h"
#include "openai/refusal.h"
#include "whippet/sampling_params.h"

namespace whippet::openai {

// Sets params.structured_outputs where anything is asked, and `param` to the field that asks for it
// ("response_format.json_schema.schema"), which a later refusal names. Two fields that ask are refused.
Refusal read_structured_outputs(const Json& body, SamplingParams& params, std::string& param);

// Compiles what is asked, so that a wrong grammar is refused before anything is computed, and by the name of
// `param`. May take a while, once for each grammar.
Refusal check_structured_outputs(const Context& context, const StructuredOutputs& asked,
                                 const std::string& param);

}  // namespace whippet::openai
