// Sentencepiece BPE: text is characters, a space among them; neighbours merge where that makes a piece, the
// piece with the highest score first (or by a list of merges, as Hugging Face's conversions have it).
// Characters without a piece become byte tokens or the unknown token. Immutable; refers to the TokenTable, in
// which U+2581 is written as a space.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/marked_text.h"
#include "text/merge_table.h"
#include "text/pattern_matcher.h"
#include "text/token_table.h"
#include "text/vocabulary.h"

namespace whippet {

// The byte that a spelling of the form <0x1F> stands for; -1 for any other spelling.
int byte_of_piece(std::string_view spelling);

// The spelling with every U+2581 as a space.
std::string spaces_for_escapes(std::string_view spelling);

// What kind of token each is: the vocabulary's own word, or what the spellings say where it has none.
std::vector<TokenType> piece_types(const Vocabulary& vocabulary);

class SentencePieceBpe {
 public:
  // tokens: the vocabulary's, indexed by bytes; must outlive this. is_special [tokens.size()]: ids that no
  // text may merge into. kCorrupt names the piece or merge that is wrong.
  static Result<SentencePieceBpe> create(const Vocabulary& vocabulary, const TokenTable& tokens,
                                         const std::vector<bool>& is_special);

  // Appends the ids of text that holds no added tokens. User-defined pieces are taken whole, leftmost and
  // longest; those that spell a control token or markup ("[UNUSED_TOKEN_145]") not where a user wrote them.
  // user_spans: offsets into text. prefix_space: put a space before the text, if the vocabulary wants it.
  void encode(std::string_view text, std::span<const TextSpan> user_spans, bool prefix_space,
              std::vector<int32_t>& ids) const;

 private:
  explicit SentencePieceBpe(const TokenTable& tokens) : tokens_(&tokens) {}

  Status read_byte_pieces(const Vocabulary& vocabulary);
  Status read_merges(const Vocabulary& vocabulary);
  Status rank_pieces(const Vocabulary& vocabulary);
  void find_whole_words();
  // The symbol of a mergeable piece or of a single character; -1 for anything else.
  int32_t symbol_of(std::string_view text) const;
  // ids from `first` on belong to the text of which this is a part.
  void encode_plain(std::string_view text, size_t first, std::vector<int32_t>& ids) const;
  void encode_word(std::string_view word, size_t first, std::vector<int32_t>& ids) const;
  void append_symbols(std::string_view word, std::vector<int32_t>& symbols) const;
  void append_unknown(int32_t symbol, size_t first, std::vector<int32_t>& ids) const;

  const TokenTable* tokens_;
  std::vector<bool> is_mergeable_;   // [tokens]: normal pieces that are no control tokens
  std::vector<bool> is_whole_word_;  // [tokens]: a word of these bytes is this one token
  MergeTable merges_;
  PatternMatcher user_defined_;
  // [byte]: some piece has a space behind a character that ends with this byte, so no cut can be made there.
  std::array<bool, 256> joins_space_{};
  std::array<int32_t, 128> symbol_of_ascii_{};
  std::array<int32_t, 256> id_of_byte_{};
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  bool prefix_unless_space_ = false;
  int32_t unknown_id_ = -1;
};

}  // namespace whippet
