#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "text/testing_vocabulary.h"

namespace whippet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_vocabulary::byte_level;
using testing_vocabulary::create;
using testing_vocabulary::error_of;

constexpr int32_t kEnd = 300, kThink = 301, kFirstMerge = 256;

// a-b merges, and the added tokens <end> (special) and <think> (not).
Vocabulary with_added() {
  Vocabulary vocabulary = byte_level({{"a", "b"}, {"ab", "c"}});
  vocabulary.added.push_back({.id = kEnd, .content = "<end>", .special = true});
  vocabulary.added.push_back({.id = kThink, .content = "<think>"});
  return vocabulary;
}

std::vector<int32_t> bytes(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

TEST(Tokenizer, MergesInsideWordsOnly) {
  const Tokenizer tokenizer = create(byte_level({{"a", "b"}, {"ab", "c"}, {"\u0120", "x"}, {"b", "\u0120"}}));
  EXPECT_THAT(tokenizer.encode("abc ab x"), ElementsAre(kFirstMerge + 1, ' ', kFirstMerge, kFirstMerge + 2));
  EXPECT_THAT(tokenizer.encode(""), ElementsAre());
}

TEST(Tokenizer, AWordThatIsATokenMergesOnlyAsTheMergesSay) {
  Vocabulary vocabulary = byte_level({{"b", "c"}, {"a", "b"}});
  vocabulary.tokens.push_back("abc");
  EXPECT_THAT(create(vocabulary).encode("abc"), ElementsAre('a', kFirstMerge)) << "no merge makes abc";
  vocabulary.ignore_merges = true;
  EXPECT_THAT(create(vocabulary).encode("abc"), ElementsAre(kFirstMerge + 2));
}

TEST(Tokenizer, ControlTokensAreParsedWhereTheOptionsSay) {
  const Tokenizer tokenizer = create(with_added());
  EXPECT_THAT(tokenizer.encode("ab<end>"), ElementsAre(kFirstMerge, kEnd));
  EXPECT_EQ(tokenizer.encode("<end>", {.parse_special = false}), bytes("<end>"));
  EXPECT_EQ(tokenizer.encode("<think>", {.parse_special = false}), bytes("<think>"));
}

TEST(Tokenizer, UsersCannotSpellControlTokens) {
  const Tokenizer tokenizer = create(with_added());
  EXPECT_EQ(tokenizer.encode(MarkedText{"<end>", {{0, 5}}}), bytes("<end>"));
  EXPECT_EQ(tokenizer.encode(MarkedText{"<think>", {{0, 7}}}), bytes("<think>"));
  EXPECT_EQ(tokenizer.encode(MarkedText{"<end>", {{4, 5}}}), bytes("<end>")) << "half of it";
  EXPECT_THAT(tokenizer.encode(MarkedText{"x<end>x", {{0, 1}, {6, 7}}}), ElementsAre('x', kEnd, 'x'));
  EXPECT_THAT(tokenizer.encode(MarkedText{"<end>", {}}), ElementsAre(kEnd));
}

TEST(Tokenizer, TextIsOnePieceAcrossTheBordersOfSpans) {
  const Tokenizer tokenizer = create(with_added());
  EXPECT_THAT(tokenizer.encode(MarkedText{"abc", {{1, 2}}}), ElementsAre(kFirstMerge + 1));
}

TEST(Tokenizer, NoMergeLeadsToAControlToken) {
  Vocabulary vocabulary = byte_level({{"a", "b"}});
  vocabulary.added.push_back({.id = kFirstMerge, .content = "ab", .special = true});
  const Tokenizer tokenizer = create(vocabulary);
  EXPECT_THAT(tokenizer.encode("ab"), ElementsAre(kFirstMerge));
  EXPECT_EQ(tokenizer.encode("ab", {.parse_special = false}), bytes("ab"));
  vocabulary.ignore_merges = true;
  EXPECT_EQ(create(vocabulary).encode(MarkedText{"ab", {{0, 2}}}), bytes("ab"));
}

TEST(Tokenizer, AddsBosAndEosWhenAsked) {
  Vocabulary vocabulary = with_added();
  vocabulary.bos_id = kEnd;
  vocabulary.eos_id = kThink;
  vocabulary.add_bos = vocabulary.add_eos = true;
  const Tokenizer tokenizer = create(vocabulary);
  EXPECT_THAT(tokenizer.encode("a", {.add_special_tokens = true}), ElementsAre(kEnd, 'a', kThink));
  EXPECT_THAT(tokenizer.encode("", {.add_special_tokens = true}), ElementsAre(kEnd, kThink));
  EXPECT_THAT(tokenizer.encode("a"), ElementsAre('a'));
  EXPECT_TRUE(tokenizer.adds_bos());
}

TEST(Tokenizer, NormalisesBetweenAddedTokensOnly) {
  Vocabulary vocabulary = byte_level({{"\u00C3", "\u00A9"}});  // the bytes of U+00E9
  vocabulary.nfc = true;
  vocabulary.added.push_back({.id = kEnd, .content = "e\u0301>", .special = true});
  vocabulary.added.push_back({.id = kThink, .content = "E\u0301]", .normalized = true});
  const Tokenizer tokenizer = create(vocabulary);
  EXPECT_THAT(tokenizer.encode("e\u0301"), ElementsAre(kFirstMerge));
  EXPECT_THAT(tokenizer.encode("e\u0301>e\u0301"), ElementsAre(kEnd, kFirstMerge));
  EXPECT_THAT(tokenizer.encode("e\u0301E\u0301]"), ElementsAre(kFirstMerge, kThink));
  EXPECT_THAT(tokenizer.encode("\u00C9]"), ElementsAre(kThink)) << "normalized: matched after NFC";
}

TEST(Tokenizer, DecodesBytesAndRepairsThem) {
  const Tokenizer tokenizer = create(with_added());
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{'a', kEnd, kThink, 0xC3, 0xA9}), "a<end><think>\u00E9");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{'a', kEnd, kThink}, true), "a<think>");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{0xC3, 'a'}), "\uFFFDa");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{-1, 299, 302, INT32_MAX, INT32_MIN, 'z'}), "z");
}

TEST(Tokenizer, KnowsItsTokens) {
  const Tokenizer tokenizer = create(with_added());
  EXPECT_EQ(tokenizer.find("<end>"), kEnd);
  EXPECT_EQ(tokenizer.find("abc"), kFirstMerge + 1);
  EXPECT_EQ(tokenizer.find(" "), ' ');
  EXPECT_EQ(tokenizer.find("nothing"), std::nullopt);
  EXPECT_EQ(tokenizer.find(""), std::nullopt);
  EXPECT_TRUE(tokenizer.is_special(kEnd));
  EXPECT_FALSE(tokenizer.is_special(kThink));
  EXPECT_FALSE(tokenizer.is_special(-5));
  EXPECT_EQ(tokenizer.token_bytes(kFirstMerge), "ab");
  EXPECT_EQ(tokenizer.token_bytes(100000), "");
  EXPECT_EQ(tokenizer.vocab_size(), 302);
  EXPECT_STREQ(tokenizer.kind_name(), "byte-level BPE");
}

TEST(Tokenizer, RowsThatOnlyPadAreNoTokens) {
  Vocabulary vocabulary = byte_level();
  vocabulary.types.assign(256, TokenType::kNormal);
  for (int i = 0; i < 3; ++i) {
    vocabulary.tokens.push_back("[PAD" + std::to_string(256 + i) + "]");
    vocabulary.types.push_back(TokenType::kUnused);
  }
  const Tokenizer tokenizer = create(vocabulary);
  EXPECT_EQ(tokenizer.vocab_size(), 256);
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{257}), "");
}

TEST(Tokenizer, AByteWithoutATokenIsLeftOut) {
  Vocabulary vocabulary = byte_level({{"a", "b"}});
  vocabulary.tokens['x'].clear();
  EXPECT_THAT(create(vocabulary).encode("axb"), ElementsAre(kFirstMerge));
  vocabulary.unknown_id = '?';
  EXPECT_THAT(create(vocabulary).encode("axb"), ElementsAre('a', '?', 'b'));
}

TEST(Tokenizer, RefusesVocabulariesThatContradictThemselves) {
  Vocabulary twice = byte_level();
  twice.tokens.push_back("a");
  EXPECT_THAT(error_of(twice), HasSubstr("\"a\" is there twice, as tokens 97 and 256"));
  Vocabulary added_twice = with_added();
  added_twice.added.push_back({.id = 302, .content = "<end>"});
  EXPECT_THAT(error_of(added_twice), HasSubstr("\"<end>\" is there twice, as added tokens 300 and 302"));
  Vocabulary no_part = byte_level();
  no_part.merges.push_back({"a", "xy"});
  EXPECT_THAT(error_of(no_part), HasSubstr("merge 1 (\"a\" \"xy\"): \"xy\" is not in the vocabulary"));
  Vocabulary no_result = byte_level();
  no_result.merges.push_back({"a", "b"});
  EXPECT_THAT(error_of(no_result), HasSubstr("makes \"ab\", which is not in the vocabulary"));
  Vocabulary wild_eos = byte_level();
  wild_eos.eos_id = 5000;
  EXPECT_THAT(error_of(wild_eos), HasSubstr("the eos id is 5000, but the vocabulary has 256 tokens"));
}

TEST(Tokenizer, RefusesIdsThatWouldFillTheMemory) {
  Vocabulary huge = byte_level();
  huge.added.push_back({.id = 2'000'000'000, .content = "<far>"});
  EXPECT_THAT(error_of(huge), HasSubstr("the id of \"<far>\" is 2000000000"));
  Vocabulary hole = byte_level();
  hole.added.push_back({.id = 9'000'000, .content = "<far>"});
  EXPECT_THAT(error_of(hole), HasSubstr("the id of \"<far>\" is 9000000, but there are 257 tokens only"));
  Vocabulary negative = byte_level();
  negative.added.push_back({.id = -3, .content = "<low>"});
  EXPECT_THAT(error_of(negative), HasSubstr("the id of \"<low>\" is negative"));
  Vocabulary lengthy = byte_level();
  lengthy.added.push_back({.id = 256, .content = std::string(100'000, 'x')});
  EXPECT_THAT(error_of(lengthy), HasSubstr("has 100000 bytes"));
}

TEST(Tokenizer, AnythingComesBackFromItsIds) {
  const Tokenizer tokenizer = create(with_added());
  std::mt19937 random(2);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (size_t n = random() % 30; n > 0; --n) {
      text += std::vector<std::string>{"a",       "ab",     "abc",    " ",          "\n", "<end>",
                                       "<think>", "\u0301", "\u4F60", "\U0001F600", "7"}[random() % 11];
    }
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text, {.parse_special = false})), text);
  }
}

// Much of one thing, or a little: a quadratic step would take minutes.
TEST(Tokenizer, EncodesHostileText) {
  for (const auto kind :
       {PreTokenizer::kGpt2, PreTokenizer::kSmolLm, PreTokenizer::kQwen2, PreTokenizer::kLlama3}) {
    Vocabulary vocabulary =
        byte_level({{"a", "a"}, {"aa", "aa"}, {"\u0120", "\u0120"}, {"\u010A", "\u010A"}}, kind);
    vocabulary.nfc = true;
    const size_t size = kind == PreTokenizer::kQwen2 ? 1'000'000 : 100'000;
    vocabulary.added.push_back({.id = 300, .content = "<|im_end|>", .special = true});
    const Tokenizer tokenizer = create(vocabulary);
    for (const char* unit :
         {"a", " ", "\n", "\r\n ", "7", "!", "'", "\u0301", "\u0323\u0301", "\xFF", "<|im_end|", " a"}) {
      std::string text;
      while (text.size() < size) text += unit;
      const auto ids = tokenizer.encode(text);
      EXPECT_GE(ids.size(), text.size() / 4) << unit;
    }
  }
}

}  // namespace
}  // namespace whippet
