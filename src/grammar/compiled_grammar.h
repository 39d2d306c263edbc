// A grammar made ready for one vocabulary, and the place of one answer in it. The seam to the grammar
// library: xgrammar_grammar.cc implements it, or absent.cc in a build without the library. Used by
// grammar_cache.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace whippet::grammar {

// What a grammar must know of a vocabulary.
struct GrammarVocabulary {
  std::vector<std::string>
      tokens;                     // [vocab] bytes; empty: a grammar never allows it (control tokens, padding)
  std::vector<int32_t> stop_ids;  // what may come, and nothing else, where a grammar ends
};

struct GrammarSource {
  enum class Kind { kEbnf, kStructuralTag } kind = Kind::kEbnf;
  std::string text;  // the rule `root` of EBNF, or xgrammar's JSON
  bool operator==(const GrammarSource&) const = default;
};

// "xgrammar 0.2.5.post1"; "" in a build without it.
std::string grammar_library();

// Where one answer stands. Not thread-safe; moved, not copied.
class GrammarMatcher {
 public:
  struct Impl;
  explicit GrammarMatcher(std::unique_ptr<Impl> impl);
  ~GrammarMatcher();
  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher& operator=(GrammarMatcher&&) noexcept;

  // Goes on by a token. False: the grammar does not allow it, and nothing changed.
  bool accept(int32_t token);
  // Sets `mask` [ceil(vocab / 32)], bit 1: allowed next. False: everything is, and the mask may hold
  // anything.
  bool fill(std::span<uint32_t> mask);
  // The grammar's end is behind it: a stop token has been accepted.
  bool ended() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// Immutable; copies share it. Any thread.
class CompiledGrammar {
 public:
  struct Impl;
  explicit CompiledGrammar(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  GrammarMatcher start() const;
  size_t bytes() const;  // of memory, about

 private:
  std::shared_ptr<const Impl> impl_;  // the cache and the matchers of running answers share it
};

// Compiles for one vocabulary. compile() is for one thread at a time and takes milliseconds to seconds.
class GrammarBuilder {
 public:
  explicit GrammarBuilder(GrammarVocabulary vocabulary);
  ~GrammarBuilder();

  // kInvalidArgument where the source is wrong; kUnsupported in a build without the library.
  Result<CompiledGrammar> compile(const GrammarSource& source);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace whippet::grammar
