// Small vocabularies for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace whippet::testing_vocabulary {

// Every byte is a token (its id is the byte), then the results of the merges in order, from 256 on.
inline Vocabulary byte_level(const std::vector<std::pair<std::string, std::string>>& merges = {},
                             PreTokenizer pre_tokenizer = PreTokenizer::kGpt2) {
  Vocabulary vocabulary;
  vocabulary.pre_tokenizer = pre_tokenizer;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.push_back(spelling_of_byte(static_cast<unsigned char>(byte)));
  }
  for (const auto& [left, right] : merges) vocabulary.tokens.push_back(left + right);
  vocabulary.merges = merges;
  return vocabulary;
}

// Sentencepiece: <unk>, <s>, </s>, then (with byte_fallback) the 256 bytes, then the pieces; the first of
// them has the highest score.
inline Vocabulary sentencepiece(const std::vector<std::string>& pieces, bool byte_fallback = true) {
  Vocabulary vocabulary;
  vocabulary.kind = TokenizerKind::kSentencePieceBpe;
  vocabulary.byte_fallback = byte_fallback;
  vocabulary.fuse_unknown = true;
  vocabulary.unknown_id = 0;
  vocabulary.bos_id = 1;
  vocabulary.eos_id = 2;
  const auto add = [&](const std::string& token, TokenType type, float score) {
    vocabulary.tokens.push_back(token);
    vocabulary.types.push_back(type);
    vocabulary.scores.push_back(score);
  };
  add("<unk>", TokenType::kUnknown, 0);
  add("<s>", TokenType::kControl, 0);
  add("</s>", TokenType::kControl, 0);
  for (int byte = 0; byte_fallback && byte < 256; ++byte)
    add(fmt::format("<0x{:02X}>", byte), TokenType::kByte, 0);
  for (const std::string& piece : pieces)
    add(piece, TokenType::kNormal, -static_cast<float>(vocabulary.tokens.size()));
  for (int32_t id = 0; id < 3; ++id) {
    vocabulary.added.push_back(
        {.id = id, .content = vocabulary.tokens[static_cast<size_t>(id)], .special = true});
  }
  return vocabulary;
}

// The id of the first piece in sentencepiece() with bytes.
inline constexpr int32_t kFirstPiece = 259;

inline Tokenizer create(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return std::move(tokenizer).value();
}

inline std::string error_of(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  return tokenizer.ok() ? "no error" : tokenizer.error().message;
}

}  // namespace whippet::testing_vocabulary
