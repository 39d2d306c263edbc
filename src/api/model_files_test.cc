#include "api/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_folder.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A byte-level vocabulary of three letters and the control tokens of ChatML.
constexpr const char* kTokenizer = R"({
  "added_tokens": [
    {"id": 3, "content": "<|im_start|>", "special": true, "single_word": false, "lstrip": false,
      "rstrip": false,
     "normalized": false},
    {"id": 4, "content": "<|im_end|>", "special": true, "single_word": false, "lstrip": false,
      "rstrip": false,
     "normalized": false},
    {"id": 5, "content": "<|endoftext|>", "special": true, "single_word": false, "lstrip": false,
     "rstrip": false, "normalized": false}],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
  "post_processor": null,
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "vocab": {"a": 0, "b": 1, "c": 2}, "merges": []}})";

Result<ModelFiles> read(const fs::path& path, ModelFilesOptions options = {}) {
  return read_model_files(path, nullptr, options);
}

TEST(ModelFiles, AFolderWithOnlyATokenizerIsEnough) {
  TestFolder folder;
  folder.write("tokenizer.json", kTokenizer);
  const auto files = read(folder.path());
  ASSERT_TRUE(files.ok()) << files.error().message;
  EXPECT_THAT((*require_tokenizer(*files))->encode("cab"), ElementsAre(2, 0, 1));
  EXPECT_THAT(files->eos_ids, IsEmpty());
  EXPECT_FALSE(files->templates.choose(false).ok());
}

TEST(ModelFiles, AFolderWithoutATokenizerTakesIdsOnlyAndSaysSo) {
  TestFolder folder;
  folder.write("config.json", R"({"eos_token_id": [7, 2]})");
  const auto files = read(folder.path());
  ASSERT_TRUE(files.ok()) << files.error().message;
  EXPECT_THAT(files->eos_ids, ElementsAre(2, 7));
  EXPECT_THAT(require_tokenizer(*files).error().message, HasSubstr("token ids only"));
}

TEST(ModelFiles, EndTokensAreTheUnionOfAllThatTheCheckpointNames) {
  TestFolder folder;
  folder.write("tokenizer.json", kTokenizer);
  folder.write("config.json", R"({"eos_token_id": 0})");
  folder.write("generation_config.json", R"({"eos_token_id": [1, 5]})");
  EXPECT_THAT(read(folder.path())->eos_ids, ElementsAre(0, 1, 5));
  folder.write("tokenizer_config.json", R"({"eos_token": {"content": "<|endoftext|>"}})");
  EXPECT_THAT(read(folder.path())->eos_ids, ElementsAre(0, 1, 5));
  folder.write("chat_template.jinja", "{{ messages[0].content }}<|im_end|>");
  EXPECT_THAT(read(folder.path())->eos_ids, ElementsAre(0, 1, 4, 5)) << "the template's own end token counts";
}

TEST(ModelFiles, SpellingsOfTokensComeAsTextOrObject) {
  TestFolder folder;
  folder.write("tokenizer.json", kTokenizer);
  folder.write("special_tokens_map.json", R"({"pad_token": "<|endoftext|>", "eos_token": "<|endoftext|>"})");
  folder.write("tokenizer_config.json", R"({"bos_token": null, "eos_token": {"content": "<|im_end|>"}})");
  const auto files = read(folder.path());
  ASSERT_TRUE(files.ok()) << files.error().message;
  EXPECT_EQ(files->token_spellings.value("eos_token", ""), "<|im_end|>");
  EXPECT_EQ(files->token_spellings.value("pad_token", ""), "<|endoftext|>");
  EXPECT_FALSE(files->token_spellings.contains("bos_token"));
  EXPECT_FALSE(files->token_spellings.contains("unk_token"));
}

TEST(ModelFiles, TheChatTemplateOptionBeatsTheFolder) {
  TestFolder folder;
  folder.write("tokenizer.json", kTokenizer);
  folder.write("chat_template.jinja", "own");
  EXPECT_EQ(read(folder.path(), {.chat_template = "{{ 'given' }}"})->templates.sources.front().source,
            "{{ 'given' }}");
  EXPECT_THAT(read(folder.path(), {.chat_template = "nowhere"}).error().message, HasSubstr("neither a file"));
}

TEST(ModelFiles, BrokenFilesAreErrorsThatNameTheFile) {
  TestFolder folder;
  folder.write("tokenizer.json", "{\"model\": 5}");
  EXPECT_THAT(read(folder.path()).error().message, HasSubstr("tokenizer.json"));
  folder.write("tokenizer.json", kTokenizer);
  folder.write("tokenizer_config.json", "[]");
  EXPECT_THAT(read(folder.path()).error().message, HasSubstr("tokenizer_config.json holds no JSON object"));
  folder.write("tokenizer_config.json", std::string(100000, '['));
  EXPECT_THAT(read(folder.path()).error().message, HasSubstr("nests deeper"));
}

TEST(ModelFiles, TheLicenceIsReadFromTheModelCard) {
  TestFolder folder;
  folder.write("config.json", "{}");
  EXPECT_EQ(read(folder.path())->licence, "");
  folder.write("LICENSE", "text");
  EXPECT_THAT(read(folder.path())->licence, HasSubstr("LICENSE"));
  folder.write("README.md", "---\nlanguage: en\nlicense: \"apache-2.0\"\n---\n# Model\n");
  EXPECT_EQ(read(folder.path())->licence, "apache-2.0");
}

TEST(ModelFiles, AGgufFileThatIsNoneIsAnError) {
  TestFolder folder;
  const auto file = folder.write("it.gguf", "GGUF but no more");
  EXPECT_THAT(read(file).error().message, HasSubstr("it.gguf"));
  EXPECT_FALSE(read(folder.path()).ok()) << "a folder with one .gguf is that file";
}

// InternLM2's config names </s> alone; a chat must end on <|im_end|> too, in both of its spellings.
TEST(ModelFiles, InternLm2EndsOnItsTemplatesToken) {
  const fs::path data = fs::path(WHIPPET_SOURCE_DIR) / "../shared/data/internlm2";
  if (!fs::exists(data)) GTEST_SKIP() << data << " is not there";
  EXPECT_THAT(read(data)->eos_ids, Contains(92542));
  EXPECT_THAT(read(data)->eos_ids, Contains(2));
  EXPECT_THAT(read(data, {.chat_template = "{{ messages[0].content }}[UNUSED_TOKEN_145]"})->eos_ids,
              Contains(92542));
}

TEST(ModelFiles, Qwen2EndsOnBothOfItsEndTokens) {
  const fs::path data = fs::path(WHIPPET_SOURCE_DIR) / "../shared/data/qwen2.5-0.5b-instruct";
  if (!fs::exists(data)) GTEST_SKIP() << data << " is not there";
  const auto files = read(data);
  ASSERT_TRUE(files.ok()) << files.error().message;
  EXPECT_THAT(files->eos_ids, ElementsAre(151643, 151645));
  EXPECT_EQ(files->generation.params.top_k, 20);
}

}  // namespace
}  // namespace whippet
