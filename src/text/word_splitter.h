// Cuts text into the words that byte-level BPE works on: the split expressions of real tokenizers, written
// out by hand. Linear in time on any input. Knows nothing of vocabularies.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/unicode.h"
#include "text/vocabulary.h"

namespace whippet {

// The expressions, where \p{L} etc. are Unicode's categories and \s is White_Space:
//   kGpt2    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//   kSmolLm  every \p{N} alone, then kGpt2 on what lies between them
//   kQwen2   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*
//            |\s*[\r\n]+|\s+(?!\S)|\s+
//   kLlama3  kQwen2 with \p{N}{1,3}
//   kNone    the whole text is one word
// A byte that is no UTF-8 counts as a character that is neither letter, number nor space.
class WordSplitter {
 public:
  explicit WordSplitter(PreTokenizer kind) : kind_(kind), table_(&UnicodeTable::get()) {}

  // The end of the word that begins at `begin`, begin < text.size(); the words tile the text.
  size_t word_end(std::string_view text, size_t begin) const;

 private:
  PreTokenizer kind_;
  const UnicodeTable* table_;
};

}  // namespace whippet
