// A chat template with tools for checkpoints that were trained to call functions and whose own template does
// not show them. Used by read_model_files.
#pragma once

#include <vector>

#include "api/template_files.h"
#include "text/tokenizer.h"

namespace whippet {

// Adds one, named "tool_use", where the vocabulary has InternLM2's tokens of plugins and no template of the
// checkpoint reads tools.
void add_tool_template(const Tokenizer& tokenizer, std::vector<NamedTemplate>& templates);

}  // namespace whippet
