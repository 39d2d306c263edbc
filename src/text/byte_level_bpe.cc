#include "text/byte_level_bpe.h"

#include "text/byte_alphabet.h"
#include "text/utf8.h"

namespace whippet {

ByteLevelBpe::ByteLevelBpe(const Vocabulary& vocabulary, const TokenTable& tokens)
    : tokens_(&tokens),
      splitter_(vocabulary.pre_tokenizer),
      add_prefix_space_(vocabulary.add_prefix_space),
      merges_(vocabulary.merges.size()) {}

Result<ByteLevelBpe> ByteLevelBpe::create(const Vocabulary& vocabulary, const TokenTable& tokens,
                                          const std::vector<bool>& is_special) {
  ByteLevelBpe bpe(vocabulary, tokens);
  for (size_t byte = 0; byte < 256; ++byte) {
    const char spelling = static_cast<char>(byte);
    const int32_t id = tokens.find(std::string_view(&spelling, 1));
    const bool usable = id >= 0 && !is_special[static_cast<size_t>(id)];
    bpe.id_of_byte_[byte] = usable ? id : vocabulary.unknown_id.value_or(-1);
  }
  WH_TRY(bpe.read_merges(vocabulary, is_special));
  bpe.find_whole_words(vocabulary, is_special);
  return bpe;
}

Status ByteLevelBpe::read_merges(const Vocabulary& vocabulary, const std::vector<bool>& is_special) {
  std::string joined;
  for (size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const auto& [left, right] = vocabulary.merges[rank];
    const auto left_bytes = bytes_of_spelling(left), right_bytes = bytes_of_spelling(right);
    const int32_t left_id = left_bytes ? tokens_->find(*left_bytes) : -1;
    const int32_t right_id = right_bytes ? tokens_->find(*right_bytes) : -1;
    if (left_id < 0 || right_id < 0) {
      return make_error(Code::kCorrupt, "tokenizer: merge {} ({} {}): {} is not in the vocabulary", rank + 1,
                        quote_text(left), quote_text(right), quote_text(left_id < 0 ? left : right));
    }
    joined.assign(*left_bytes).append(*right_bytes);
    const int32_t result = tokens_->find(joined);
    if (result < 0) {
      return make_error(Code::kCorrupt,
                        "tokenizer: merge {} ({} {}) makes {}, which is not in the vocabulary", rank + 1,
                        quote_text(left), quote_text(right), quote_text(left + right));
    }
    if (is_special[static_cast<size_t>(result)]) continue;
    merges_.insert(left_id, right_id, {static_cast<uint32_t>(rank), result});
  }
  return {};
}

void ByteLevelBpe::find_whole_words(const Vocabulary& vocabulary, const std::vector<bool>& is_special) {
  is_whole_word_.assign(tokens_->size(), false);
  std::vector<int32_t> ids;
  for (size_t i = 0; i < tokens_->size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const std::string_view bytes = tokens_->bytes(id);
    if (is_special[i] || bytes.empty() || tokens_->find(bytes) != id) continue;
    if (!vocabulary.ignore_merges) {
      ids.clear();
      merge_word(bytes, ids);
      if (ids.size() != 1 || ids[0] != id) continue;
    }
    is_whole_word_[i] = true;
  }
}

void ByteLevelBpe::encode(std::string_view text, std::vector<int32_t>& ids) const {
  if (text.empty()) return;
  std::string prefixed;
  if (add_prefix_space_ && text[0] != ' ') {
    prefixed.reserve(text.size() + 1);
    prefixed.append(1, ' ').append(text);
    text = prefixed;
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = splitter_.word_end(text, begin);
    encode_word(text.substr(begin, end - begin), ids);
    begin = end;
  }
}

void ByteLevelBpe::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
  if (word.size() > 1) {
    const int32_t id = tokens_->find(word);
    if (id >= 0 && is_whole_word_[static_cast<size_t>(id)]) {
      ids.push_back(id);
      return;
    }
  }
  merge_word(word, ids);
}

void ByteLevelBpe::merge_word(std::string_view word, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  for (const char byte : word) {
    const int32_t id = id_of_byte_[static_cast<unsigned char>(byte)];
    if (id >= 0) ids.push_back(id);
  }
  ids.resize(before + merges_.apply(std::span(ids).subspan(before)));
}

}  // namespace whippet
