// For the tests of grammars: a vocabulary of single bytes, and whether a grammar takes a text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "grammar/compiled_grammar.h"
#include "whippet/structured_outputs.h"

namespace whippet::grammar {

// Token i is byte i; 256 ends an answer, 257 is a control token.
GrammarVocabulary byte_vocabulary();
constexpr int32_t kEnd = 256;

// Of compiled grammars of that vocabulary; fails the test where one cannot be compiled.
class Acceptor {
 public:
  explicit Acceptor(const StructuredOutputs& asked);

  // The whole text, and then the end.
  bool takes(std::string_view text) const;
  // The beginning of a text.
  bool begins(std::string_view text) const;

 private:
  std::optional<CompiledGrammar> grammar_;
};

StructuredOutputs json(std::string schema);
StructuredOutputs regex(std::string expression);

}  // namespace whippet::grammar
