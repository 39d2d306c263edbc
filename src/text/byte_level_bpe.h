// Byte-level BPE: text is cut into words by a split expression, a word's bytes are merged by rank.
// Immutable; refers to the tokenizer's TokenTable.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/merge_table.h"
#include "text/token_table.h"
#include "text/vocabulary.h"
#include "text/word_splitter.h"

namespace whippet {

class ByteLevelBpe {
 public:
  // tokens: the vocabulary's, indexed by bytes; must outlive this. is_special [tokens.size()]: ids that no
  // text may merge into. kCorrupt names a merge whose parts or result are no tokens.
  static Result<ByteLevelBpe> create(const Vocabulary& vocabulary, const TokenTable& tokens,
                                     const std::vector<bool>& is_special);

  // Appends the ids of text that holds no added tokens. A byte without a token is left out, or becomes the
  // unknown token where the vocabulary has one.
  void encode(std::string_view text, std::vector<int32_t>& ids) const;

 private:
  ByteLevelBpe(const Vocabulary& vocabulary, const TokenTable& tokens);

  Status read_merges(const Vocabulary& vocabulary, const std::vector<bool>& is_special);
  void find_whole_words(const Vocabulary& vocabulary, const std::vector<bool>& is_special);
  void encode_word(std::string_view word, std::vector<int32_t>& ids) const;
  // Appends the merged symbols of the word.
  void merge_word(std::string_view word, std::vector<int32_t>& ids) const;

  const TokenTable* tokens_;
  WordSplitter splitter_;
  bool add_prefix_space_;
  std::array<int32_t, 256> id_of_byte_{};  // -1: none
  MergeTable merges_;
  std::vector<bool> is_whole_word_;  // [tokens]: a word of these bytes is this one token
};

}  // namespace whippet
