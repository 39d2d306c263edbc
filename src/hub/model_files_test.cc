#include "hub/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/fake_hub.h"

namespace whippet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<RepoFile> files(std::initializer_list<const char*> names) {
  std::vector<RepoFile> out;
  for (const char* name : names) out.push_back({name, 1 << 20, "", ""});
  return out;
}

std::vector<std::string> names(const Result<ModelFileSet>& chosen) {
  std::vector<std::string> out;
  if (!chosen.ok()) return {code_name(chosen.error().code) + (": " + chosen.error().message)};
  for (const RepoFile& file : chosen->files) out.push_back(file.path);
  return out;
}

TEST(ModelFileSet, TakesWhatTheModelNeedsAndWeightsLast) {
  const auto chosen = choose_files(
      files({"model.safetensors", "README.md", "LICENSE", "config.json", "tokenizer.json",
             "tokenizer_config.json", "pytorch_model.bin", "onnx/model.onnx", "generation_config.json",
             "original/consolidated.safetensors", "training_args.json", "sub/config.json", ".gitattributes"}),
      "", "m");
  EXPECT_THAT(names(chosen), ElementsAre("config.json", "tokenizer.json", "tokenizer_config.json",
                                         "generation_config.json", "model.safetensors"));
  EXPECT_EQ(chosen->gguf, "");
}

TEST(ModelFileSet, TakesTheShardsOfTheIndexAndNotAConsolidatedCopy) {
  EXPECT_THAT(
      names(choose_files(files({"config.json", "consolidated.safetensors", "model-00001-of-00002.safetensors",
                                "model-00002-of-00002.safetensors", "model.safetensors.index.json",
                                "model.fp16-00001-of-00002.safetensors"}),
                         "", "m")),
      ElementsAre("config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors",
                  "model-00002-of-00002.safetensors"));
}

TEST(ModelFileSet, TakesAQuantizedFileUnderItsOwnName) {
  EXPECT_THAT(
      names(choose_files(files({"config.json", "gptq_model-4bit-128g.safetensors", "quantize_config.json"}),
                         "", "m")),
      ElementsAre("config.json", "quantize_config.json", "gptq_model-4bit-128g.safetensors"));
}

TEST(ModelFileSet, ATagSelectsOneGgufWhateverItsCase) {
  const auto all =
      files({"config.json", "model.safetensors", "Tiny-Q4_K_M.gguf", "Tiny-Q4_K_S.gguf", "Tiny.BF16.gguf",
             "tiny_q8_0.gguf", "Tiny-IQ4_XS.gguf", "Tiny-f16.gguf", "mmproj-Tiny-Q4_K_M.gguf"});
  EXPECT_EQ(choose_files(all, "q4_k_m", "m")->gguf, "Tiny-Q4_K_M.gguf");
  EXPECT_EQ(choose_files(all, "Q8_0", "m")->gguf, "tiny_q8_0.gguf");
  EXPECT_EQ(choose_files(all, "F16", "m")->gguf, "Tiny-f16.gguf");
  EXPECT_EQ(choose_files(all, "bf16", "m")->gguf, "Tiny.BF16.gguf");
  EXPECT_EQ(choose_files(all, "Tiny-IQ4_XS.gguf", "m")->gguf, "Tiny-IQ4_XS.gguf");
  EXPECT_THAT(names(choose_files(all, "Q4_K", "m")), ElementsAre(HasSubstr("not_found")));
  EXPECT_THAT(names(choose_files(all, "Q2_K", "m")), ElementsAre(HasSubstr("Tiny-Q4_K_S.gguf (1.0 MiB)")));
}

TEST(ModelFileSet, SeveralGgufsWithoutATagAreListed) {
  const auto text =
      names(choose_files(files({"a-Q4_0.gguf", "a-Q8_0.gguf", "mmproj.gguf"}), "", "hf:o/a"))[0];
  EXPECT_THAT(text, HasSubstr("invalid_argument"));
  EXPECT_THAT(text, HasSubstr("a-Q4_0.gguf"));
  EXPECT_THAT(text, HasSubstr("a-Q8_0.gguf"));
  EXPECT_THAT(text, HasSubstr("hf:o/a:Q4_K_M"));
  EXPECT_THAT(text, Not(HasSubstr("mmproj")));
  EXPECT_EQ(choose_files(files({"a-Q4_0.gguf", "mmproj.gguf"}), "", "m")->gguf, "a-Q4_0.gguf");
  EXPECT_THAT(names(choose_files(files({"a/x-Q4_0.gguf", "b/x-Q4_0.gguf"}), "Q4_0", "m"))[0],
              HasSubstr("that match 'Q4_0'"));
}

TEST(ModelFileSet, ATagMayNameAFolderOfGgufs) {
  EXPECT_EQ(choose_files(files({"Q4_0/model.gguf", "Q8_0/model.gguf"}), "q8_0", "m")->gguf,
            "Q8_0/model.gguf");
}

TEST(ModelFileSet, ASplitGgufIsRefusedByName) {
  const auto text =
      names(choose_files(files({"a-Q4_0-00001-of-00002.gguf", "a-Q4_0-00002-of-00002.gguf"}), "", "m"))[0];
  EXPECT_THAT(text, HasSubstr("unsupported"));
  EXPECT_THAT(text, HasSubstr("a-Q4_0-00001-of-00002.gguf"));
}

TEST(ModelFileSet, PickledWeightsAreRefusedByNameWithWhatToDo) {
  const auto text =
      names(choose_files(files({"config.json", "pytorch_model.bin", "tokenizer.json"}), "", "m"))[0];
  EXPECT_THAT(text, HasSubstr("unsupported"));
  EXPECT_THAT(text, HasSubstr("pytorch_model.bin"));
  EXPECT_THAT(text, HasSubstr("safe_serialization"));
  EXPECT_THAT(names(choose_files(files({"README.md"}), "", "m"))[0], HasSubstr("no weights"));
  EXPECT_THAT(names(choose_files(files({"model.safetensors"}), "", "m"))[0], HasSubstr("no config.json"));
}

TEST(FindComplete, WantsWeightsTokenizerAndEveryShardOfTheIndex) {
  const HubTestFolder folder;
  const auto complete = [&] {
    const auto found = find_complete(folder.path(), "", "m");
    return found.ok() && found->has_value();
  };
  EXPECT_FALSE(complete());
  write_file(folder.path() / "config.json", "{}");
  write_file(folder.path() / "tokenizer.json", "{}");
  write_file(folder.path() / "model-00001-of-00002.safetensors", "x");
  EXPECT_TRUE(complete());  // no index says that there is more
  write_file(folder.path() / "model.safetensors.index.json",
             R"({"weight_map": {"a": "model-00001-of-00002.safetensors",)"
             R"( "b": "model-00002-of-00002.safetensors"}})");
  EXPECT_FALSE(complete());
  std::filesystem::create_symlink("nowhere", folder.path() / "model-00002-of-00002.safetensors");
  EXPECT_FALSE(complete());
  std::filesystem::remove(folder.path() / "model-00002-of-00002.safetensors");
  write_file(folder.path() / "model-00002-of-00002.safetensors", "x");
  EXPECT_TRUE(complete());
  std::filesystem::remove(folder.path() / "tokenizer.json");
  EXPECT_FALSE(complete());
}

TEST(FindComplete, AHostileIndexIsIncompleteAndNotFollowed) {
  const HubTestFolder folder;
  write_file(folder.path() / "config.json", "{}");
  write_file(folder.path() / "tokenizer.json", "{}");
  write_file(folder.path() / "model-00001-of-00001.safetensors", "x");
  for (const char* index : {"", "[1]", "{\"weight_map\": 3}", "{\"weight_map\": {\"a\": 3}}",
                            "{\"weight_map\": {}}", "{\"weight_map\": {\"a\": \"/etc/passwd\"}}",
                            "{\"weight_map\": {\"a\": \"../../../../../../etc/passwd\"}}"}) {
    write_file(folder.path() / "model.safetensors.index.json", index);
    const auto found = find_complete(folder.path(), "", "m");
    ASSERT_TRUE(found.ok());
    EXPECT_FALSE(found->has_value()) << index;
  }
}

}  // namespace
}  // namespace whippet
