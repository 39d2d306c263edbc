#include "text/sentencepiece_bpe.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "text/utf8.h"

namespace whippet {
namespace {

// Symbols that are no tokens: a character that is no piece of its own, and a byte that is no UTF-8.
constexpr int32_t kCharacterSymbols = 0x40000000;
constexpr int32_t kByteSymbols = kCharacterSymbols + 0x200000;

constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";  // U+2581

// A piece of n characters is cut in n - 1 places to find its merges, so hostile lengths are refused.
constexpr size_t kMaxPieceBytes = 512;

}  // namespace

int byte_of_piece(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return -1;
  int value = 0;
  for (const char digit : spelling.substr(3, 2)) {
    if (digit >= '0' && digit <= '9') {
      value = value * 16 + (digit - '0');
    } else if (digit >= 'A' && digit <= 'F') {
      value = value * 16 + (digit - 'A' + 10);
    } else {
      return -1;
    }
  }
  return value;
}

std::string spaces_for_escapes(std::string_view spelling) {
  std::string text;
  text.reserve(spelling.size());
  for (size_t at = 0; at < spelling.size();) {
    const size_t found = std::min(spelling.find(kEscapedSpace, at), spelling.size());
    text.append(spelling.substr(at, found - at));
    if (found < spelling.size()) text += ' ';
    at = found + kEscapedSpace.size();
  }
  return text;
}

// The U+2581 that the offset cuts in two, or nothing, at the offset.
TextSpan around_escape(std::string_view text, size_t offset) {
  for (size_t back = 1; back < kEscapedSpace.size() && back <= offset; ++back) {
    const size_t begin = offset - back;
    if (text.substr(begin, kEscapedSpace.size()) == kEscapedSpace)
      return {begin, begin + kEscapedSpace.size()};
  }
  return {offset, offset};
}

std::vector<TokenType> piece_types(const Vocabulary& vocabulary) {
  if (!vocabulary.types.empty()) return vocabulary.types;
  std::vector<TokenType> types(vocabulary.tokens.size(), TokenType::kNormal);
  for (size_t id = 0; id < types.size(); ++id) {
    if (vocabulary.byte_fallback && byte_of_piece(vocabulary.tokens[id]) >= 0) types[id] = TokenType::kByte;
    if (vocabulary.unknown_id == static_cast<int32_t>(id)) types[id] = TokenType::kUnknown;
  }
  return types;
}

Result<SentencePieceBpe> SentencePieceBpe::create(const Vocabulary& vocabulary, const TokenTable& tokens,
                                                  const std::vector<bool>& is_special) {
  SentencePieceBpe bpe(tokens);
  bpe.fuse_unknown_ = vocabulary.fuse_unknown;
  bpe.prefix_unless_space_ = vocabulary.prefix_unless_space;
  bpe.unknown_id_ = vocabulary.unknown_id.value_or(-1);
  const std::vector<TokenType> types = piece_types(vocabulary);
  std::vector<PatternMatcher::Pattern> user_defined;
  bpe.is_mergeable_.assign(tokens.size(), false);
  for (size_t i = 0; i < types.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const std::string_view bytes = tokens.bytes(id);
    bpe.is_mergeable_[i] = types[i] == TokenType::kNormal && !is_special[i] && tokens.find(bytes) == id;
    if (types[i] == TokenType::kUserDefined && !vocabulary.tokens[i].empty()) {
      std::string text = spaces_for_escapes(vocabulary.tokens[i]);
      const bool guarded = is_special[i] || is_markup(text);
      user_defined.push_back({.text = std::move(text), .id = id, .guarded = guarded});
    }
    if (!bpe.is_mergeable_[i]) continue;
    if (bytes.size() > kMaxPieceBytes) {
      return make_error(Code::kCorrupt, "tokenizer: piece {} ({}) has {} bytes; at most {} make sense", id,
                        quote_text(bytes), bytes.size(), kMaxPieceBytes);
    }
    for (size_t space = bytes.find(' ', 1); space != std::string_view::npos;
         space = bytes.find(' ', space + 1)) {
      bpe.joins_space_[static_cast<unsigned char>(bytes[space - 1])] = true;
    }
  }
  bpe.user_defined_ = PatternMatcher(std::move(user_defined));
  for (size_t code = 0; code < 128; ++code) {
    const char spelling = static_cast<char>(code);
    bpe.symbol_of_ascii_[code] = bpe.symbol_of(std::string_view(&spelling, 1));
  }
  WH_TRY(bpe.read_byte_pieces(vocabulary));
  WH_TRY(vocabulary.merges.empty() ? bpe.rank_pieces(vocabulary) : bpe.read_merges(vocabulary));
  bpe.find_whole_words();
  return bpe;
}

Status SentencePieceBpe::read_byte_pieces(const Vocabulary& vocabulary) {
  byte_fallback_ = vocabulary.byte_fallback;
  id_of_byte_.fill(-1);
  const std::vector<TokenType> types = piece_types(vocabulary);
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != TokenType::kByte) continue;
    const int byte = byte_of_piece(vocabulary.tokens[i]);
    if (byte < 0) {
      return make_error(Code::kCorrupt, "tokenizer: token {} is a byte by its type, but spelled {}", i,
                        quote_text(vocabulary.tokens[i]));
    }
    int32_t& id = id_of_byte_[static_cast<size_t>(byte)];
    if (id >= 0) {
      return make_error(Code::kCorrupt, "tokenizer: {} is there twice, as tokens {} and {}",
                        quote_text(vocabulary.tokens[i]), id, i);
    }
    id = static_cast<int32_t>(i);
  }
  if (!byte_fallback_) return {};
  const auto missing = std::find(id_of_byte_.begin(), id_of_byte_.end(), -1);
  if (missing == id_of_byte_.end()) return {};
  return make_error(Code::kCorrupt,
                    "tokenizer: byte_fallback is set, but <0x{:02X}> is not in the vocabulary",
                    missing - id_of_byte_.begin());
}

int32_t SentencePieceBpe::symbol_of(std::string_view text) const {
  const int32_t id = tokens_->find(text);
  if (id >= 0 && is_mergeable_[static_cast<size_t>(id)]) return id;
  const Utf8Character character = decode_utf8(text.data(), text.data() + text.size());
  if (character.code == kInvalidCharacter || character.size != text.size()) return -1;
  return kCharacterSymbols + static_cast<int32_t>(character.code);
}

Status SentencePieceBpe::read_merges(const Vocabulary& vocabulary) {
  merges_ = MergeTable(vocabulary.merges.size());
  for (size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const std::string left = spaces_for_escapes(vocabulary.merges[rank].first);
    const std::string right = spaces_for_escapes(vocabulary.merges[rank].second);
    const int32_t left_id = tokens_->find(left), right_id = tokens_->find(right);
    if (left_id < 0 || right_id < 0) {
      return make_error(Code::kCorrupt, "tokenizer: merge {} ({} {}): {} is not in the vocabulary", rank + 1,
                        quote_text(left), quote_text(right), quote_text(left_id < 0 ? left : right));
    }
    const int32_t result = tokens_->find(left + right);
    if (result < 0) {
      return make_error(Code::kCorrupt,
                        "tokenizer: merge {} ({} {}) makes {}, which is not in the vocabulary", rank + 1,
                        quote_text(left), quote_text(right), quote_text(left + right));
    }
    if (!is_mergeable_[static_cast<size_t>(result)]) continue;
    merges_.insert(left_id, right_id, {static_cast<uint32_t>(rank), result});
  }
  return {};
}

// Every way to cut a piece in two symbols is a merge that makes it; its rank is the place of the piece's
// score. Equal scores have equal ranks, so that the leftmost merges first.
Status SentencePieceBpe::rank_pieces(const Vocabulary& vocabulary) {
  std::vector<float> scores;
  for (size_t i = 0; i < vocabulary.scores.size(); ++i) {
    if (std::isnan(vocabulary.scores[i])) {
      return make_error(Code::kCorrupt, "tokenizer: the score of token {} ({}) is not a number", i,
                        quote_text(vocabulary.tokens[i]));
    }
    if (is_mergeable_[i]) scores.push_back(vocabulary.scores[i]);
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());

  struct Found {
    int32_t left, right;
    MergeTable::Merge merge;
  };
  std::vector<Found> found;
  for (size_t i = 0; i < vocabulary.scores.size(); ++i) {
    if (!is_mergeable_[i]) continue;
    const std::string_view bytes = tokens_->bytes(static_cast<int32_t>(i));
    const auto place = std::lower_bound(scores.begin(), scores.end(), vocabulary.scores[i], std::greater<>());
    const MergeTable::Merge merge{static_cast<uint32_t>(place - scores.begin()), static_cast<int32_t>(i)};
    const char* const end = bytes.data() + bytes.size();
    for (size_t cut = decode_utf8(bytes.data(), end).size; cut < bytes.size();
         cut += decode_utf8(bytes.data() + cut, end).size) {
      const int32_t left = symbol_of(bytes.substr(0, cut));
      const int32_t right = left < 0 ? -1 : symbol_of(bytes.substr(cut));
      if (right >= 0) found.push_back({left, right, merge});
    }
  }
  merges_ = MergeTable(found.size());
  for (const Found& each : found) merges_.insert(each.left, each.right, each.merge);
  return {};
}

void SentencePieceBpe::find_whole_words() {
  is_whole_word_.assign(tokens_->size(), false);
  std::vector<int32_t> symbols;
  for (size_t i = 0; i < is_mergeable_.size(); ++i) {
    if (!is_mergeable_[i]) continue;
    symbols.clear();
    append_symbols(tokens_->bytes(static_cast<int32_t>(i)), symbols);
    is_whole_word_[i] = merges_.apply(symbols) == 1 && symbols[0] == static_cast<int32_t>(i);
  }
}

void SentencePieceBpe::encode(std::string_view text, std::span<const TextSpan> user_spans, bool prefix_space,
                              std::vector<int32_t>& ids) const {
  if (text.empty()) return;
  if (prefix_unless_space_ && (text[0] == ' ' || text.starts_with(kEscapedSpace))) prefix_space = false;
  std::string rewritten;
  std::vector<TextSpan> moved_spans;
  const bool has_escapes = text.find(kEscapedSpace) != std::string_view::npos;
  if (prefix_space || has_escapes) {
    // A written U+2581 is a space to the model. It shortens the text, so the spans move.
    if (prefix_space) rewritten += ' ';
    size_t done = 0;
    const auto copy_until = [&](size_t offset) {
      rewritten += spaces_for_escapes(text.substr(done, offset - done));
      done = offset;
      return rewritten.size();
    };
    for (const TextSpan& span : user_spans) {
      const size_t begin = std::max(done, around_escape(text, span.begin).begin);
      const size_t end = around_escape(text, span.end).end;
      if (end <= done) continue;
      const size_t moved_begin = copy_until(begin);
      moved_spans.push_back({moved_begin, copy_until(end)});
    }
    copy_until(text.size());
    text = rewritten;
    user_spans = moved_spans;
  }
  const size_t first = ids.size();
  size_t begin = 0;
  for (const PatternMatcher::Match& match : user_defined_.find_all(text, user_spans)) {
    encode_plain(text.substr(begin, match.begin - begin), first, ids);
    ids.push_back(match.id);
    begin = match.end;
  }
  encode_plain(text.substr(begin), first, ids);
}

// Cuts before spaces that no piece joins to what stands before them: merges never cross such a place, and
// short words are quick.
void SentencePieceBpe::encode_plain(std::string_view text, size_t first, std::vector<int32_t>& ids) const {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find(' ', begin + 1);
    while (end != std::string_view::npos && joins_space_[static_cast<unsigned char>(text[end - 1])]) {
      end = text.find(' ', end + 1);
    }
    if (end == std::string_view::npos) end = text.size();
    encode_word(text.substr(begin, end - begin), first, ids);
    begin = end;
  }
}

void SentencePieceBpe::encode_word(std::string_view word, size_t first, std::vector<int32_t>& ids) const {
  const int32_t id = tokens_->find(word);
  if (id >= 0 && is_whole_word_[static_cast<size_t>(id)]) {
    ids.push_back(id);
    return;
  }
  std::vector<int32_t> symbols;
  symbols.reserve(word.size());
  append_symbols(word, symbols);
  symbols.resize(merges_.apply(symbols));
  for (const int32_t symbol : symbols) {
    if (symbol < kCharacterSymbols) {
      ids.push_back(symbol);
    } else {
      append_unknown(symbol, first, ids);
    }
  }
}

void SentencePieceBpe::append_symbols(std::string_view word, std::vector<int32_t>& symbols) const {
  const char* const end = word.data() + word.size();
  for (size_t at = 0; at < word.size();) {
    const Utf8Character character = decode_utf8(word.data() + at, end);
    if (character.code < 0x80) {
      symbols.push_back(symbol_of_ascii_[character.code]);
    } else if (character.code != kInvalidCharacter) {
      symbols.push_back(symbol_of(word.substr(at, character.size)));
    } else {
      for (const char byte : word.substr(at, character.size)) {
        symbols.push_back(kByteSymbols + static_cast<unsigned char>(byte));
      }
    }
    at += character.size;
  }
}

void SentencePieceBpe::append_unknown(int32_t symbol, size_t first, std::vector<int32_t>& ids) const {
  if (byte_fallback_) {
    std::string bytes;
    if (symbol >= kByteSymbols) {
      bytes += static_cast<char>(symbol - kByteSymbols);
    } else {
      append_utf8(bytes, static_cast<char32_t>(symbol - kCharacterSymbols));
    }
    for (const char byte : bytes) ids.push_back(id_of_byte_[static_cast<unsigned char>(byte)]);
    return;
  }
  const bool fused = fuse_unknown_ && ids.size() > first && ids.back() == unknown_id_;
  if (unknown_id_ >= 0 && !fused) ids.push_back(unknown_id_);
}

}  // namespace whippet
