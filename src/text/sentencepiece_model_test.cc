#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "text/testing_vocabulary.h"
#include "text/tokenizer.h"
#include "text/vocabulary_reader.h"

namespace whippet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Writes protobuf messages, field by field.
std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string number(uint64_t field, uint64_t value) { return varint(field << 3) + varint(value); }
std::string message(uint64_t field, const std::string& content) {
  return varint((field << 3) | 2) + varint(content.size()) + content;
}
std::string real(uint64_t field, float value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return varint((field << 3) | 5) + bytes;
}
std::string piece(const std::string& spelling, float score, uint64_t type = 1) {
  return message(1, message(1, spelling) + real(2, score) + (type == 1 ? "" : number(3, type)));
}

constexpr uint64_t kUnknown = 2, kControl = 3, kUserDefined = 4;

std::string trainer() { return message(2, number(3, 2) + number(40, 0) + number(41, 1) + number(42, 2)); }
std::string normalizer(bool prefix = false) {
  return message(3, message(1, "identity") + number(3, prefix) + number(4, 0));
}
std::string pieces() {
  return piece("<unk>", 0, kUnknown) + piece("<s>", 0, kControl) + piece("</s>", 0, kControl) +
         piece("ab", -1) + piece("a", -2) + piece("b", -3) + piece(std::string(1, '\0'), -4) +
         piece("\u2581", -5) + piece("xyz", 0, kUserDefined);
}

Error error_of(const std::string& model) {
  auto vocabulary = read_sentencepiece_model(model);
  EXPECT_FALSE(vocabulary.ok());
  return vocabulary.ok() ? Error{} : vocabulary.error();
}

TEST(SentencePieceModel, ReadsPiecesAndIds) {
  auto vocabulary = read_sentencepiece_model(pieces() + trainer() + normalizer());
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->unknown_id, 0);
  EXPECT_EQ(vocabulary->bos_id, 1);
  EXPECT_EQ(vocabulary->eos_id, 2);
  EXPECT_FALSE(vocabulary->add_prefix_space);
  const Tokenizer tokenizer = testing_vocabulary::create(*vocabulary);
  EXPECT_THAT(tokenizer.encode(std::string("<s>ab bxyz\0", 11)), ElementsAre(1, 3, 7, 5, 8, 6));
  EXPECT_THAT(tokenizer.encode("a", {.add_special_tokens = true}), ElementsAre(1, 4));
}

TEST(SentencePieceModel, TheNormalizersDefaultsAreSentencepieces) {
  auto vocabulary = read_sentencepiece_model(pieces() + trainer() + message(3, number(4, 0)));
  ASSERT_TRUE(vocabulary.ok());
  EXPECT_TRUE(vocabulary->add_prefix_space);
}

TEST(SentencePieceModel, IdsOfMinusOneAreNone) {
  const std::string spec = message(2, number(3, 2) + number(41, UINT64_MAX) + number(43, 2));
  auto vocabulary = read_sentencepiece_model(pieces() + spec + normalizer());
  ASSERT_TRUE(vocabulary.ok());
  EXPECT_EQ(vocabulary->bos_id, std::nullopt);
  EXPECT_EQ(vocabulary->pad_id, 2);
}

TEST(SentencePieceModel, FieldsItDoesNotKnowAreSteppedOver) {
  const std::string odd = number(77, 5) + message(78, "x") + real(79, 1) + varint((80 << 3) | 1) + "12345678";
  auto vocabulary = read_sentencepiece_model(odd + pieces() + odd + trainer() + normalizer() + odd);
  EXPECT_TRUE(vocabulary.ok());
}

TEST(SentencePieceModel, EveryTruncationIsAnErrorAndNoCrash) {
  const std::string model = trainer() + normalizer() + pieces();
  for (size_t size = 0; size < model.size(); ++size) {
    auto vocabulary = read_sentencepiece_model(model.substr(0, size));
    if (!vocabulary.ok()) continue;
    // Cut between two fields: a shorter, whole model, whose ids may be out of reach.
    EXPECT_LT(vocabulary->tokens.size(), 9u);
  }
  EXPECT_THAT(error_of(model.substr(0, model.size() - 1)).message,
              HasSubstr("tokenizer.model: the file is truncated"));
}

TEST(SentencePieceModel, RefusesByName) {
  EXPECT_THAT(error_of("").message, HasSubstr("there are no pieces"));
  EXPECT_THAT(error_of("hello, this is no model").message, HasSubstr("truncated or no protobuf message"));
  EXPECT_THAT(error_of(pieces()).message, HasSubstr("it does not say that it is a BPE model"));
  EXPECT_THAT(error_of(pieces() + message(2, number(3, 1))).message,
              HasSubstr("of type unigram is not supported"));
  EXPECT_THAT(error_of(pieces() + message(2, "")).message, HasSubstr("of type unigram is not supported"));
  EXPECT_THAT(error_of(pieces() + trainer() + message(3, message(1, "nmt_nfkc") + message(2, "map"))).message,
              HasSubstr("the normalizer \"nmt_nfkc\" is not supported"));
  EXPECT_THAT(error_of(piece("a", 0, 9)).message, HasSubstr("piece 0 has the unknown type 9"));
  EXPECT_THAT(error_of(piece("", 0)).message, HasSubstr("piece 0 is empty"));
  EXPECT_THAT(error_of(message(1, "\x0A\xFF\xFF\xFF\xFF\x0F")).message, HasSubstr("piece 0 is truncated"));
}

}  // namespace
}  // namespace whippet
