// From what a request asks of an answer's text to a grammar: checked, bounded, and without a vocabulary yet.
#pragma once

#include "base/error.h"
#include "grammar/compiled_grammar.h"
#include "whippet/structured_outputs.h"

namespace whippet::grammar {

// kInvalidArgument where not exactly one kind is set, where what is set is wrong or not supported, or where
// its grammar would be too large to compile in bounded time. The message begins with the field:
// "structured_outputs.json: ...". Any thread; takes milliseconds at most.
Result<GrammarSource> grammar_source(const StructuredOutputs& asked);

}  // namespace whippet::grammar
