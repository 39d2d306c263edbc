#include "grammar/compiled_grammar.h"

namespace whippet::grammar {

struct GrammarMatcher::Impl {};
struct CompiledGrammar::Impl {};
struct GrammarBuilder::Impl {};

std::string grammar_library() { return ""; }

GrammarMatcher::GrammarMatcher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GrammarMatcher::~GrammarMatcher() = default;
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;
GrammarMatcher& GrammarMatcher::operator=(GrammarMatcher&&) noexcept = default;
bool GrammarMatcher::accept(int32_t) { return false; }
bool GrammarMatcher::fill(std::span<uint32_t>) { return false; }
bool GrammarMatcher::ended() const { return true; }

GrammarMatcher CompiledGrammar::start() const { return GrammarMatcher(nullptr); }
size_t CompiledGrammar::bytes() const { return 0; }

GrammarBuilder::GrammarBuilder(GrammarVocabulary) {}
GrammarBuilder::~GrammarBuilder() = default;

Result<CompiledGrammar> GrammarBuilder::compile(const GrammarSource&) {
  return make_error(Code::kUnsupported,
                    "structured_outputs: this binary is built without grammars: run "
                    "scripts/quickstart where xgrammar's source can be fetched, and it builds them in");
}

}  // namespace whippet::grammar
