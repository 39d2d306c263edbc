// Compiled grammars of one vocabulary, by what they were made of. Compiling happens on one thread of its own,
// of low priority, so that it takes nothing from an engine; whoever asks waits, up to a bound.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "base/error.h"
#include "grammar/compiled_grammar.h"
#include "whippet/structured_outputs.h"

namespace whippet::grammar {

class GrammarCache {
 public:
  struct Limits {
    size_t bytes = 128 << 20;                    // of compiled grammars that no answer needs to be using
    size_t waiting = 256;                        // different grammars that wait to be compiled
    std::chrono::milliseconds patience{30'000};  // of who waits
  };

  // `vocabulary` is called once, on the thread of the cache, when a grammar is first asked for.
  GrammarCache(std::function<GrammarVocabulary()> vocabulary, Limits limits);
  // Waits for the grammar that is being compiled.
  ~GrammarCache();

  // Any thread. kInvalidArgument as of grammar_source and GrammarBuilder, or where it took too long;
  // kUnavailable where too many wait; kUnsupported in a build without grammars.
  Result<CompiledGrammar> get(const StructuredOutputs& asked);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace whippet::grammar
