// Any schema, expression, grammar or structural tag is refused or compiled, and what it is compiled to can be
// walked. The first byte says which kind the rest is.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "grammar/compiled_grammar.h"
#include "grammar/grammar_source.h"

namespace whippet::grammar {
namespace {

constexpr int32_t kEnd = 256;
constexpr size_t kMostInput =
    2000;  // bytes; larger ones are bounded by the same limits, and slow under a sanitizer

GrammarVocabulary bytes() {
  GrammarVocabulary words;
  for (int i = 0; i < kEnd; ++i) words.tokens.emplace_back(1, static_cast<char>(i));
  words.tokens.emplace_back();
  words.stop_ids = {kEnd};
  return words;
}

StructuredOutputs asked(uint8_t kind, std::string text) {
  StructuredOutputs result;
  switch (kind % 5) {
    case 0:
      result.json = std::move(text);
      break;
    case 1:
      result.regex = std::move(text);
      break;
    case 2:
      result.grammar = std::move(text);
      break;
    case 3:
      result.structural_tag = std::move(text);
      break;
    default:
      result.choice = {text, text.substr(0, text.size() / 2)};
      break;
  }
  return result;
}

void walk(const CompiledGrammar& grammar) {
  GrammarMatcher matcher = grammar.start();
  std::vector<uint32_t> mask(9);
  for (uint32_t step = 0; step < 40 && !matcher.ended(); ++step) {
    if (!matcher.fill(mask)) mask.assign(9, ~0U);
    for (uint32_t i = 0; i <= kEnd; ++i) {
      const uint32_t token = (i * 31 + step * 7) % (kEnd + 1);
      if ((mask[token / 32] >> (token % 32) & 1) == 0) continue;
      if (!matcher.accept(static_cast<int32_t>(token)))
        __builtin_trap();  // the mask and the grammar disagree
      break;
    }
  }
}

}  // namespace
}  // namespace whippet::grammar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace whippet::grammar;
  if (size == 0 || size > kMostInput) return 0;
  static GrammarBuilder builder(bytes());
  const auto source =
      grammar_source(asked(data[0], std::string(reinterpret_cast<const char*>(data) + 1, size - 1)));
  if (!source.ok()) return 0;
  const auto compiled = builder.compile(*source);
  if (compiled.ok()) walk(*compiled);
  return 0;
}
