#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "text/testing_vocabulary.h"
#include "text/tokenizer.h"
#include "text/vocabulary_reader.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class VocabularyFolder : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("whippet_folder_") + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name) << content;
  }
  void write_pair() {
    json vocab = json::object();
    for (int byte = 0; byte < 256; ++byte) vocab[spelling_of_byte(static_cast<unsigned char>(byte))] = byte;
    vocab["ab"] = 256;
    vocab["##"] = 257;
    write("vocab.json", vocab.dump());
    write("merges.txt", "#version: 0.2\r\na b\r\n# #\r\n");
  }
  Tokenizer load() {
    auto tokenizer = Tokenizer::from_folder(folder_);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    return std::move(tokenizer).value();
  }
  std::string error() {
    auto tokenizer = Tokenizer::from_folder(folder_);
    return tokenizer.ok() ? "no error" : tokenizer.error().message;
  }

  fs::path folder_;
};

TEST_F(VocabularyFolder, ReadsVocabAndMergesWithWindowsLineEnds) {
  write_pair();
  EXPECT_THAT(load().encode("ab ##"), ElementsAre(256, ' ', 257));
}

TEST_F(VocabularyFolder, TheConfigNamesTheClassAndTheTokens) {
  write_pair();
  write("added_tokens.json", R"({"<|im_end|>": 300, "<think>": 301})");
  write("special_tokens_map.json", R"({"eos_token": "<|im_end|>", "additional_special_tokens": ["<x>"]})");
  write("tokenizer_config.json",
        R"({"tokenizer_class": "Qwen2Tokenizer", "bos_token": null, "add_bos_token": false,
        "unk_token": {"content": "##"}, "added_tokens_decoder": {"302": {"content": "<x>",
      "special": true}}})");
  const Tokenizer tokenizer = load();
  EXPECT_THAT(tokenizer.encode("12<|im_end|><think><x>"), ElementsAre('1', '2', 300, 301, 302));
  EXPECT_EQ(tokenizer.eos_id(), 300);
  EXPECT_TRUE(tokenizer.is_special(300));
  EXPECT_FALSE(tokenizer.is_special(301));
  EXPECT_TRUE(tokenizer.is_special(302));
  EXPECT_THAT(tokenizer.encode("\u0065\u0301"), ElementsAre(0xC3, 0xA9)) << "Qwen2 normalises";
}

TEST_F(VocabularyFolder, BosIsAddedAsTheConfigSays) {
  write_pair();
  write("tokenizer_config.json", R"({"bos_token": "##", "add_bos_token": true})");
  EXPECT_THAT(load().encode("a", {.add_special_tokens = true}), ElementsAre(257, 'a'));
}

TEST_F(VocabularyFolder, SaysWhatItLookedFor) {
  EXPECT_THAT(
      error(),
      HasSubstr("no tokenizer; expected tokenizer.json, tokenizer.model, or vocab.json and merges.txt"));
  write("vocab.json", "{}");
  EXPECT_THAT(error(), HasSubstr("no tokenizer"));
  write("merges.txt", "");
  EXPECT_THAT(error(), HasSubstr("vocab.json: there are no tokens"));
}

TEST_F(VocabularyFolder, RefusesBrokenFilesByName) {
  write_pair();
  write("merges.txt", "#version: 0.2\na b\na b c\n");
  EXPECT_THAT(error(), HasSubstr("merges.txt: merge 2 (\"a b c\") is not two tokens"));
  write("merges.txt", "a zz\n");
  EXPECT_THAT(error(), HasSubstr("\"zz\" is not in the vocabulary"));
  write_pair();
  write("added_tokens.json", R"({"<x>": 123456789012})");
  EXPECT_THAT(error(), HasSubstr("added_tokens.json: the id of \"<x>\" is 123456789012"));
  write("added_tokens.json", "{}");
  write("tokenizer_config.json", "{\"added_tokens_decoder\": {\"x7\": {\"content\": \"<x>\"}}}");
  EXPECT_THAT(error(), HasSubstr("added token id \"x7\" is no number"));
  write("tokenizer_config.json", "{\"add_bos_token\": \"yes\"}");
  EXPECT_THAT(error(), HasSubstr("add_bos_token is neither true nor false"));
  write("tokenizer_config.json", "{\"tokenizer_class\": \"RobertaTokenizer\"}");
  EXPECT_THAT(error(), HasSubstr("\"RobertaTokenizer\" are not supported"));
  write("tokenizer_config.json", "not json");
  EXPECT_THAT(error(), HasSubstr("tokenizer_config.json: no JSON at byte"));
}

TEST_F(VocabularyFolder, AnUnsupportedTokenizerJsonGivesWayToAModelFile) {
  write("tokenizer.json", R"({"model": {"type": "Unigram", "vocab": []}})");
  EXPECT_THAT(error(), HasSubstr("a model of type Unigram is not supported"));
  write("tokenizer.model", "junk");
  EXPECT_THAT(error(), HasSubstr("tokenizer.model"));
}

}  // namespace
}  // namespace whippet
