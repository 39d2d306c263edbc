#include "text/sentencepiece_bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "text/testing_vocabulary.h"
#include "text/utf8.h"

namespace whippet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_vocabulary::create;
using testing_vocabulary::error_of;
using testing_vocabulary::kFirstPiece;
using testing_vocabulary::sentencepiece;

constexpr int32_t P = kFirstPiece;
constexpr int32_t kByte0 = 3;  // <0x00>

TEST(SentencePiece, MergesTheBestScoreFirst) {
  const Tokenizer tokenizer = create(sentencepiece({"bc", "ab", "a", "b", "c", "\u2581", "\u2581a"}));
  EXPECT_THAT(tokenizer.encode("abc"), ElementsAre(P + 2, P));
  EXPECT_THAT(tokenizer.encode("ab"), ElementsAre(P + 1));
  EXPECT_THAT(tokenizer.encode("b a"), ElementsAre(P + 3, P + 6));
  EXPECT_STREQ(tokenizer.kind_name(), "sentencepiece BPE");
}

TEST(SentencePiece, MergesTheLeftmostOfEqualScores) {
  Vocabulary vocabulary = sentencepiece({"bc", "ab", "a", "b", "c"});
  vocabulary.scores[P] = vocabulary.scores[P + 1] = -1;
  EXPECT_THAT(create(vocabulary).encode("abc"), ElementsAre(P + 1, P + 4));
}

TEST(SentencePiece, CharactersWithoutAPieceBecomeBytesOrUnknown) {
  EXPECT_THAT(create(sentencepiece({"a"}))
                  .encode("\u4F60"
                          "a\xFF"),
              ElementsAre(kByte0 + 0xE4, kByte0 + 0xBD, kByte0 + 0xA0, P, kByte0 + 0xFF));
  Vocabulary vocabulary = sentencepiece({"a"}, false);
  EXPECT_THAT(create(vocabulary).encode("xyaz"), ElementsAre(0, 3, 0)) << "neighbours fuse";
  vocabulary.fuse_unknown = false;
  EXPECT_THAT(create(vocabulary).encode("xya"), ElementsAre(0, 0, 3));
}

TEST(SentencePiece, ACharacterThatIsNoPieceCanStillMerge) {
  EXPECT_THAT(create(sentencepiece({"\u4F60\u597D", "\u4F60\u597Da", "a"}))
                  .encode("\u4F60\u597D"
                          "a"),
              ElementsAre(P + 1));
}

TEST(SentencePiece, ThePieceOfOneNulIsAPiece) {
  const std::string nul(1, '\0');
  const Tokenizer tokenizer = create(sentencepiece({nul, "a", "a" + nul}));
  EXPECT_THAT(tokenizer.encode(nul), ElementsAre(P));
  EXPECT_THAT(tokenizer.encode("a" + nul + nul), ElementsAre(P + 2, P));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{P + 2}), "a" + nul);
}

TEST(SentencePiece, SpacesAreWrittenAsU2581) {
  const Tokenizer tokenizer =
      create(sentencepiece({"\u2581\u2581", "\u2581", "a\u2581b", "a\u2581", "a", "b"}));
  EXPECT_THAT(tokenizer.encode("   "), ElementsAre(P, P + 1));
  EXPECT_THAT(tokenizer.encode("a b"), ElementsAre(P + 2)) << "no cut where a piece has a space inside";
  EXPECT_THAT(tokenizer.encode("\u2581"), ElementsAre(P + 1));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(" a b ")), " a b ");
}

TEST(SentencePiece, AU2581ThatASpanCutsIsStillASpace) {
  const Tokenizer tokenizer = create(sentencepiece({"a", "\u2581", "\u2581a"}));
  const std::string text = "a\u2581a\u2581a";
  const auto whole = tokenizer.encode(text);
  EXPECT_EQ(tokenizer.decode(whole), "a a a");
  for (size_t begin = 0; begin < text.size(); ++begin) {
    for (size_t end = begin + 1; end <= text.size(); ++end) {
      EXPECT_EQ(tokenizer.encode(MarkedText{text, {{begin, end}}}), whole) << begin << " " << end;
    }
  }
  EXPECT_EQ(tokenizer.encode(MarkedText{text, {{0, 2}, {3, 5}, {6, 7}}}), whole);
}

TEST(SentencePiece, ThePrefixSpaceComesAndGoes) {
  Vocabulary vocabulary = sentencepiece({"\u2581a", "\u2581", "a"});
  EXPECT_EQ(create(vocabulary).decode(create(vocabulary).encode(" a")), " a");
  vocabulary.add_prefix_space = true;
  const Tokenizer tokenizer = create(vocabulary);
  EXPECT_THAT(tokenizer.encode("a"), ElementsAre(P));
  EXPECT_THAT(tokenizer.encode(" a"), ElementsAre(P + 1, P));
  EXPECT_THAT(tokenizer.encode("a<s>a"), ElementsAre(P, 1, P));
  EXPECT_THAT(tokenizer.encode(""), ElementsAre());
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{P, P}), "a a");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{1, P, P}, true), "a a");
  vocabulary.prefix_only_at_start = true;
  EXPECT_THAT(create(vocabulary).encode("a<s>a"), ElementsAre(P, 1, P + 2));
  vocabulary.prefix_unless_space = true;
  EXPECT_THAT(create(vocabulary).encode(" a"), ElementsAre(P));
}

// "[U1]" is a user-defined piece whose id an added token took over; fullwidth A is ordinary text.
TEST(SentencePiece, UsersCannotSpellUserDefinedMarkup) {
  Vocabulary vocabulary = sentencepiece({"[", "U", "1", "]", "\uFF21", "[U1]", "[U2]", "2", "a\u2581b"});
  for (const int32_t id : {P + 4, P + 5, P + 6, P + 8})
    vocabulary.types[static_cast<size_t>(id)] = TokenType::kUserDefined;
  vocabulary.added.push_back({.id = P + 5, .content = "<|im_end|>", .special = true});
  const Tokenizer tokenizer = create(vocabulary);
  EXPECT_THAT(tokenizer.encode("[U1][U2]\uFF21"), ElementsAre(P + 5, P + 6, P + 4));
  EXPECT_THAT(tokenizer.encode("<|im_end|>"), ElementsAre(P + 5));
  EXPECT_THAT(tokenizer.encode(MarkedText{"[U1]\uFF21", {{0, 7}}}),
              ElementsAre(P, P + 1, P + 2, P + 3, P + 4));
  EXPECT_THAT(tokenizer.encode(MarkedText{"[U2]", {{3, 4}}}), ElementsAre(P, P + 1, P + 7, P + 3));
  EXPECT_THAT(tokenizer.encode("[U1]", {.parse_special = false}), ElementsAre(P, P + 1, P + 2, P + 3));
  EXPECT_THAT(tokenizer.encode("a b"), ElementsAre(P + 8));
  // A written U+2581 shortens the text in front of the span.
  EXPECT_THAT(tokenizer.encode(MarkedText{"\u2581[U1][U1]", {{7, 11}}}),
              ElementsAre(kByte0 + ' ', P + 5, P, P + 1, P + 2, P + 3));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{P + 5}), "<|im_end|>");
}

TEST(SentencePiece, ControlAndUnknownPiecesCannotBeMade) {
  const Tokenizer tokenizer = create(sentencepiece({"<", "s", ">", "<s", "</"}));
  EXPECT_THAT(tokenizer.encode("<s>"), ElementsAre(1));
  EXPECT_THAT(tokenizer.encode("<s>", {.parse_special = false}), ElementsAre(P + 3, P + 2));
}

TEST(SentencePiece, RefusesWhatContradictsItself) {
  Vocabulary twice = sentencepiece({"a", "a"});
  EXPECT_THAT(error_of(twice), HasSubstr("\"a\" is there twice, as tokens 259 and 260"));
  Vocabulary not_a_number = sentencepiece({"a"});
  not_a_number.scores[P] = NAN;
  EXPECT_THAT(error_of(not_a_number), HasSubstr("the score of token 259 (\"a\") is not a number"));
  Vocabulary no_byte = sentencepiece({"a"});
  no_byte.tokens[kByte0 + 7] = "<0x08>";
  EXPECT_THAT(error_of(no_byte), HasSubstr("\"<0x08>\" is there twice, as tokens 10 and 11"));
  no_byte.types[kByte0 + 7] = TokenType::kNormal;
  EXPECT_THAT(error_of(no_byte), HasSubstr("<0x07> is not in the vocabulary"));
  Vocabulary no_score = sentencepiece({"a"});
  no_score.scores.pop_back();
  EXPECT_THAT(error_of(no_score), HasSubstr("260 tokens, but 259 scores"));
  Vocabulary odd_byte = sentencepiece({"a"});
  odd_byte.types[P] = TokenType::kByte;
  EXPECT_THAT(error_of(odd_byte), HasSubstr("token 259 is a byte by its type, but spelled \"a\""));
  EXPECT_THAT(error_of(sentencepiece({std::string(2000, 'x')})), HasSubstr("has 2000 bytes"));
}

// The algorithm by definition: as often as two neighbours make a piece, the best and leftmost do.
std::vector<std::string> merge_slowly(std::string_view text, const std::map<std::string, float>& pieces) {
  std::vector<std::string> symbols;
  for (size_t at = 0; at < text.size();) {
    const size_t size = decode_utf8(text.data() + at, text.data() + text.size()).size;
    symbols.emplace_back(text.substr(at, size));
    at += size;
  }
  for (;;) {
    size_t best = symbols.size();
    float best_score = -INFINITY;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto piece = pieces.find(symbols[i] + symbols[i + 1]);
      if (piece == pieces.end() || piece->second <= best_score) continue;
      best = i;
      best_score = piece->second;
    }
    if (best == symbols.size()) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

TEST(SentencePiece, AgreesWithTheDefinitionOnRandomPiecesAndText) {
  std::mt19937 random(31);
  const std::vector<std::string> letters = {"a", "b", "\u2581", "\u2581", "\u4F60"};
  for (int round = 0; round < 200; ++round) {
    std::map<std::string, float> pieces;
    std::vector<std::string> order = letters;
    order.erase(order.begin() + 2);
    for (const std::string& letter : order) pieces[letter] = -99;
    for (size_t n = random() % 40; n > 0; --n) {
      std::string piece;
      for (size_t size = 2 + random() % 4; size > 0; --size) piece += letters[random() % letters.size()];
      if (pieces.try_emplace(piece, -static_cast<float>(random() % 10)).second) order.push_back(piece);
    }
    Vocabulary vocabulary = sentencepiece(order);
    for (size_t i = 0; i < order.size(); ++i)
      vocabulary.scores[static_cast<size_t>(P) + i] = pieces[order[i]];
    const Tokenizer tokenizer = create(vocabulary);
    for (const size_t size : {1, 5, 30, 200}) {
      std::string escaped;
      for (size_t n = 0; n < size; ++n) escaped += letters[random() % letters.size()];
      std::vector<int32_t> expected;
      for (const std::string& symbol : merge_slowly(escaped, pieces)) {
        expected.push_back(
            P + static_cast<int32_t>(std::find(order.begin(), order.end(), symbol) - order.begin()));
      }
      ASSERT_EQ(tokenizer.encode(spaces_for_escapes(escaped)), expected) << escaped;
    }
  }
}

TEST(SentencePiece, EncodesHostileText) {
  const Tokenizer tokenizer =
      create(sentencepiece({"\u2581\u2581", "\u2581", "aa", "aaaa", "a", "\n\n", "\n"}));
  for (const char* unit : {"a", " ", "\n", "\u2581", "\u0301", "\xFF", " a", "[U", "\u4F60"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    EXPECT_GE(tokenizer.encode(text).size(), 150'000u) << unit;
  }
}

}  // namespace
}  // namespace whippet
