#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/testing_vocabulary.h"
#include "text/tokenizer.h"
#include "text/vocabulary_reader.h"

namespace whippet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_vocabulary::create;

GgufVocabulary byte_level() {
  GgufVocabulary gguf;
  gguf.model = "gpt2";
  gguf.pre = "qwen2";
  gguf.tokens = testing_vocabulary::byte_level({{"a", "b"}}).tokens;
  gguf.types.assign(gguf.tokens.size(), 1);
  for (const auto& [token, type] :
       {std::pair("<|im_end|>", 3), std::pair("<think>", 4), std::pair("[PAD259]", 5)}) {
    gguf.tokens.push_back(token);
    gguf.types.push_back(type);
  }
  gguf.merges = {"a b"};
  gguf.eos_id = 257;
  return gguf;
}

GgufVocabulary sentencepiece() {
  const Vocabulary vocabulary = testing_vocabulary::sentencepiece({"\u2581a", "\u2581", "a"});
  GgufVocabulary gguf;
  gguf.model = "llama";
  gguf.tokens = vocabulary.tokens;
  gguf.scores = vocabulary.scores;
  for (const TokenType type : vocabulary.types) gguf.types.push_back(static_cast<int32_t>(type) + 1);
  gguf.bos_id = 1;
  gguf.unknown_id = 0;
  return gguf;
}

Tokenizer tokenizer_of(GgufVocabulary gguf) {
  auto vocabulary = vocabulary_from_gguf(std::move(gguf));
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  return create(std::move(vocabulary).value());
}

std::string error_of(GgufVocabulary gguf) {
  auto vocabulary = vocabulary_from_gguf(std::move(gguf));
  return vocabulary.ok() ? "no error" : vocabulary.error().message;
}

TEST(GgufVocabulary, ControlTokensAreSpecialAndUserDefinedOnesAreAdded) {
  const Tokenizer tokenizer = tokenizer_of(byte_level());
  EXPECT_THAT(tokenizer.encode("ab<|im_end|><think>"), ElementsAre(256, 257, 258));
  EXPECT_TRUE(tokenizer.is_special(257));
  EXPECT_FALSE(tokenizer.is_special(258));
  EXPECT_EQ(tokenizer.vocab_size(), 259) << "the padding is no token";
  EXPECT_EQ(tokenizer.eos_id(), 257);
  EXPECT_FALSE(tokenizer.adds_bos());
}

TEST(GgufVocabulary, PreSaysHowWordsAreCut) {
  for (const auto& [pre, expected] :
       {std::pair("qwen2", PreTokenizer::kQwen2), std::pair("smollm", PreTokenizer::kSmolLm),
        std::pair("llama-bpe", PreTokenizer::kLlama3), std::pair("default", PreTokenizer::kGpt2),
        std::pair("", PreTokenizer::kGpt2)}) {
    GgufVocabulary gguf = byte_level();
    gguf.pre = pre;
    auto vocabulary = vocabulary_from_gguf(gguf);
    ASSERT_TRUE(vocabulary.ok());
    EXPECT_EQ(vocabulary->pre_tokenizer, expected) << pre;
    EXPECT_EQ(vocabulary->nfc, expected == PreTokenizer::kQwen2);
    EXPECT_EQ(vocabulary->ignore_merges, expected == PreTokenizer::kLlama3);
  }
}

TEST(GgufVocabulary, SentencepieceWritesAPrefixSpaceUnlessToldOtherwise) {
  GgufVocabulary gguf = sentencepiece();
  EXPECT_THAT(tokenizer_of(gguf).encode("a", {.add_special_tokens = true}),
              ElementsAre(1, testing_vocabulary::kFirstPiece));
  gguf.add_space_prefix = false;
  gguf.add_bos = false;
  EXPECT_THAT(tokenizer_of(gguf).encode("a", {.add_special_tokens = true}),
              ElementsAre(testing_vocabulary::kFirstPiece + 2));
  EXPECT_THAT(tokenizer_of(gguf).encode("<s>b"), ElementsAre(1, 3 + 'b'));
}

TEST(GgufVocabulary, TheDragonOfInternLm2IsTheNulPiece) {
  GgufVocabulary gguf = sentencepiece();
  gguf.add_space_prefix = false;
  const auto add = [&](const char* token, int32_t type) {
    gguf.tokens.push_back(token);
    gguf.types.push_back(type);
    gguf.scores.push_back(-100);
  };
  add("\U0001F409", 1);
  EXPECT_THAT(tokenizer_of(gguf).encode("\U0001F409"), ElementsAre(262)) << "a dragon is a dragon elsewhere";
  add("[UNUSED_TOKEN_0]", 5);
  EXPECT_THAT(tokenizer_of(gguf).encode(std::string_view("\0", 1)), ElementsAre(262));
  EXPECT_EQ(tokenizer_of(gguf).encode("\U0001F409").size(), 4u);
}

TEST(GgufVocabulary, RefusesByName) {
  GgufVocabulary gguf = byte_level();
  gguf.model = "bert";
  EXPECT_THAT(error_of(gguf), HasSubstr("tokenizer.ggml.model \"bert\" is not supported"));
  gguf = byte_level();
  gguf.pre = "viking";
  EXPECT_THAT(error_of(gguf), HasSubstr("tokenizer.ggml.pre \"viking\" is not supported"));
  gguf = byte_level();
  gguf.types[3] = 9;
  EXPECT_THAT(error_of(gguf), HasSubstr("token 3 (\"\u0103\") has the unknown type 9"));
  gguf.types.pop_back();
  EXPECT_THAT(error_of(gguf), HasSubstr("260 tokens, but 259 token types"));
  gguf = byte_level();
  gguf.merges.push_back("abc");
  EXPECT_THAT(error_of(gguf), HasSubstr("merge 2 (\"abc\") is not two tokens"));
  gguf = byte_level();
  gguf.bos_id = 400;
  EXPECT_THAT(error_of(gguf), HasSubstr("tokenizer.ggml.bos_token_id is 400, but there are 260 tokens"));
  gguf.bos_id = UINT32_MAX;
  EXPECT_EQ(error_of(gguf), "no error");
  EXPECT_THAT(error_of(GgufVocabulary{}), HasSubstr("tokenizer.ggml.tokens is empty"));
}

}  // namespace
}  // namespace whippet
