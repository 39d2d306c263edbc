#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "text/testing_vocabulary.h"
#include "text/tokenizer.h"
#include "text/vocabulary_reader.h"

namespace whippet {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// A small tokenizer.json: bytes, then "ab", then the added token <end> with id 300.
json document() {
  json vocab = json::object();
  for (int byte = 0; byte < 256; ++byte) vocab[spelling_of_byte(static_cast<unsigned char>(byte))] = byte;
  vocab["ab"] = 256;
  return {{"added_tokens", {{{"id", 300}, {"content", "<end>"}, {"special", true}, {"normalized", false}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"a b"}}}}};
}

json split(const std::string& regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}

json sequence(std::vector<json> parts) { return {{"type", "Sequence"}, {"pretokenizers", parts}}; }

const json kBareByteLevel = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};

Vocabulary read(const json& content) {
  auto vocabulary = read_tokenizer_json(content.dump());
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  return std::move(vocabulary).value();
}

Error error_of(const std::string& content) {
  auto vocabulary = read_tokenizer_json(content);
  EXPECT_FALSE(vocabulary.ok());
  return vocabulary.ok() ? Error{} : vocabulary.error();
}
std::string corrupt(const json& content) {
  const Error error = error_of(content.dump());
  EXPECT_EQ(error.code, Code::kCorrupt) << error.message;
  return error.message;
}
std::string unsupported(const json& content) {
  const Error error = error_of(content.dump());
  EXPECT_EQ(error.code, Code::kUnsupported) << error.message;
  return error.message;
}

TEST(TokenizerJson, ReadsMergesAsStringsAndAsPairs) {
  json content = document();
  const auto ids = testing_vocabulary::create(read(content)).encode("ab<end>");
  EXPECT_THAT(ids, ElementsAre(256, 300));
  content["model"]["merges"] = json::array({json::array({"a", "b"})});
  EXPECT_EQ(testing_vocabulary::create(read(content)).encode("ab<end>"), ids);
}

TEST(TokenizerJson, ReadsTheFlagsOfAddedTokens) {
  json content = document();
  content["added_tokens"].push_back({{"id", 301},
                                     {"content", "<x>"},
                                     {"special", false},
                                     {"lstrip", true},
                                     {"rstrip", true},
                                     {"single_word", true}});
  const AddedToken token = read(content).added.at(1);
  EXPECT_TRUE(token.lstrip && token.rstrip && token.single_word && token.normalized);
  EXPECT_FALSE(token.special);
}

TEST(TokenizerJson, KnowsThePreTokenizersOfRealModels) {
  json content = document();
  EXPECT_EQ(read(content).pre_tokenizer, PreTokenizer::kGpt2);
  content["pre_tokenizer"] =
      sequence({{{"type", "Digits"}, {"individual_digits", true}},
                {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}});
  EXPECT_EQ(read(content).pre_tokenizer, PreTokenizer::kSmolLm);
  content["pre_tokenizer"] = sequence({split(kQwen2), kBareByteLevel});
  content["normalizer"] = {{"type", "NFC"}};
  EXPECT_EQ(read(content).pre_tokenizer, PreTokenizer::kQwen2);
  EXPECT_TRUE(read(content).nfc);
  std::string llama3 = kQwen2;
  llama3.insert(llama3.find("\\p{N}| ") + 5, "{1,3}");
  content["pre_tokenizer"] = sequence({split(llama3), kBareByteLevel});
  EXPECT_EQ(read(content).pre_tokenizer, PreTokenizer::kLlama3);
}

TEST(TokenizerJson, ATemplateSaysWhatIsAdded) {
  json content = document();
  content["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "ByteLevel"}},
        {{"type", "TemplateProcessing"},
         {"single",
          {{{"SpecialToken", {{"id", "<end>"}, {"type_id", 0}}}},
           {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
         {"special_tokens", {{"<end>", {{"id", "<end>"}, {"ids", {300}}, {"tokens", {"<end>"}}}}}}}}}};
  const Vocabulary vocabulary = read(content);
  EXPECT_TRUE(vocabulary.add_bos);
  EXPECT_FALSE(vocabulary.add_eos);
  EXPECT_EQ(vocabulary.bos_id, 300);
  EXPECT_THAT(testing_vocabulary::create(vocabulary).encode("a", {.add_special_tokens = true}),
              ElementsAre(300, 'a'));
}

TEST(TokenizerJson, ReadsSentencepieceInTheStyleOfLlama2) {
  json vocab = {{"<unk>", 0}, {"\u2581a", 257}, {"\u2581", 258}, {"a", 259}};
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = byte + 1;
  json content = document();
  content["pre_tokenizer"] = nullptr;
  content["normalizer"] = {{"type", "Sequence"},
                           {"normalizers",
                            {{{"type", "Prepend"}, {"prepend", "\u2581"}},
                             {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}};
  content["model"] = {{"type", "BPE"},         {"vocab", vocab},       {"merges", {"\u2581 a"}},
                      {"byte_fallback", true}, {"unk_token", "<unk>"}, {"fuse_unk", true}};
  const Tokenizer tokenizer = testing_vocabulary::create(read(content));
  EXPECT_STREQ(tokenizer.kind_name(), "sentencepiece BPE");
  EXPECT_THAT(tokenizer.encode("a b"), ElementsAre(257, 258, 1 + 'b'));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a b\u00E9")), "a b\u00E9");
}

TEST(TokenizerJson, RefusesBrokenFilesByName) {
  EXPECT_THAT(error_of("").message, HasSubstr("tokenizer.json: no JSON at byte"));
  EXPECT_THAT(error_of(document().dump().substr(0, 500)).message, HasSubstr("no JSON at byte 501"));
  EXPECT_THAT(error_of("[]").message, HasSubstr("no JSON object"));
  EXPECT_THAT(error_of("{}").message, HasSubstr("there is no object \"model\""));
  EXPECT_THAT(error_of(std::string(100'000, '[')).message, HasSubstr("nested more than 64 deep"));
  json content = document();
  content["model"]["merges"] = {"a b", "abc"};
  EXPECT_THAT(corrupt(content), HasSubstr("merge 2 (\"abc\") is not two tokens"));
  content["model"]["merges"] = json::array({json::array({"a", "b", "c"})});
  EXPECT_THAT(corrupt(content), HasSubstr("merge 1 is not a pair of tokens"));
  content["model"]["merges"] = json::array({json::array({"a", 7})});
  EXPECT_THAT(corrupt(content), HasSubstr("merge 1 is not a pair of tokens"));
  content["model"]["merges"] = {{"a", "b"}};
  EXPECT_THAT(corrupt(content), HasSubstr("model.merges is no list"));
  content = document();
  content["model"]["vocab"]["xy"] = "seven";
  EXPECT_THAT(corrupt(content), HasSubstr("the id of \"xy\" is no number"));
  content["model"]["vocab"]["xy"] = 97;
  EXPECT_THAT(corrupt(content), HasSubstr("both have the id 97"));
  content["model"]["vocab"]["xy"] = 10'000'000;
  EXPECT_THAT(corrupt(content), HasSubstr("the id of \"xy\" is 10000000; at most 9999999"));
  content["model"]["vocab"]["xy"] = 5'000'000;
  EXPECT_THAT(corrupt(content), HasSubstr("the id of \"xy\" is 5000000, but there are 258 tokens only"));
  content["model"]["vocab"] = json::array();
  EXPECT_THAT(corrupt(content), HasSubstr("model.vocab is no object with tokens"));
  content = document();
  content["added_tokens"][0]["id"] = -1;
  EXPECT_THAT(corrupt(content), HasSubstr("added token \"<end>\" has the id -1"));
  content["added_tokens"][0] = {{"id", 5}};
  EXPECT_THAT(corrupt(content), HasSubstr("added token 5 has no content"));
  content["added_tokens"] = "x";
  EXPECT_THAT(corrupt(content), HasSubstr("added_tokens is no list"));
  content = document();
  content["model"]["unk_token"] = "nope";
  EXPECT_THAT(corrupt(content), HasSubstr("unk_token \"nope\" is not in the vocabulary"));
}

TEST(TokenizerJson, ADuplicateKeyIsADuplicateToken) {
  const std::string text =
      R"({"model":{"vocab":{"a":0,"a":1},"merges":[]},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false}})";
  auto vocabulary = read_tokenizer_json(text);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  EXPECT_THAT(testing_vocabulary::error_of(*vocabulary),
              HasSubstr("\"a\" is there twice, as tokens 0 and 1"));
}

TEST(TokenizerJson, NamesWhatItDoesNotSupport) {
  json content = document();
  content["model"]["type"] = "Unigram";
  EXPECT_THAT(unsupported(content), HasSubstr("a model of type Unigram"));
  content = document();
  content["normalizer"] = {{"type", "NFKC"}};
  EXPECT_THAT(unsupported(content), HasSubstr("normalizer NFKC"));
  content = document();
  content["pre_tokenizer"] = sequence({split("\\d+"), kBareByteLevel});
  EXPECT_THAT(unsupported(content), HasSubstr("the split expression \\d+"));
  content["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  EXPECT_THAT(unsupported(content), HasSubstr("pre-tokenizer BertPreTokenizer"));
  content["pre_tokenizer"] = nullptr;
  EXPECT_THAT(unsupported(content), HasSubstr("neither byte-level nor in sentencepiece's style"));
  content = document();
  content["post_processor"] = {{"type", "RobertaProcessing"}};
  EXPECT_THAT(unsupported(content), HasSubstr("post-processor RobertaProcessing"));
  content = document();
  content["model"]["continuing_subword_prefix"] = "##";
  EXPECT_THAT(unsupported(content), HasSubstr("continuing_subword_prefix"));
}

}  // namespace
}  // namespace whippet
