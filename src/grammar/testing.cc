#include "grammar/testing.h"

#include <gtest/gtest.h>

#include "grammar/grammar_source.h"

namespace whippet::grammar {

GrammarVocabulary byte_vocabulary() {
  GrammarVocabulary words;
  for (int i = 0; i < 256; ++i) words.tokens.emplace_back(1, static_cast<char>(i));
  words.tokens.emplace_back();
  words.tokens.emplace_back();
  words.stop_ids = {kEnd};
  return words;
}

Acceptor::Acceptor(const StructuredOutputs& asked) {
  static GrammarBuilder builder(byte_vocabulary());
  const Result<GrammarSource> source = grammar_source(asked);
  if (!source.ok()) {
    ADD_FAILURE() << source.error().message;
    return;
  }
  Result<CompiledGrammar> compiled = builder.compile(*source);
  if (!compiled.ok()) {
    ADD_FAILURE() << compiled.error().message << "\n" << source->text;
    return;
  }
  grammar_ = std::move(compiled).value();
}

bool Acceptor::begins(std::string_view text) const {
  if (!grammar_) return false;
  GrammarMatcher matcher = grammar_->start();
  for (const char c : text)
    if (!matcher.accept(static_cast<unsigned char>(c))) return false;
  return true;
}

bool Acceptor::takes(std::string_view text) const {
  if (!grammar_) return false;
  GrammarMatcher matcher = grammar_->start();
  for (const char c : text)
    if (!matcher.accept(static_cast<unsigned char>(c))) return false;
  return matcher.accept(kEnd) && matcher.ended();
}

StructuredOutputs json(std::string schema) {
  StructuredOutputs asked;
  asked.json = std::move(schema);
  return asked;
}

StructuredOutputs regex(std::string expression) {
  StructuredOutputs asked;
  asked.regex = std::move(expression);
  return asked;
}

}  // namespace whippet::grammar
