#include "model/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "model/checkpoint_testing.h"

namespace whippet {
namespace {

using testing::HasSubstr;

Error problem(const std::filesystem::path& path) {
  const Result<Checkpoint> checkpoint = open_checkpoint(path);
  EXPECT_FALSE(checkpoint.ok());
  return checkpoint.ok() ? Error{} : checkpoint.error();
}

TEST(Checkpoint, AFolderOfSafetensorsIsRead) {
  const auto checkpoint = open_checkpoint(test_data("tiny/llama-untied"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->container, Checkpoint::Container::kSafetensors);
  EXPECT_EQ(checkpoint->config["model_type"], "llama");
  EXPECT_TRUE(checkpoint->gguf.is_null());
  EXPECT_EQ(checkpoint->find("lm_head.weight")->shape, (std::vector<int64_t>{64, 32}));
  EXPECT_EQ(checkpoint->find("nothing"), nullptr);
  const int64_t shape[] = {64, 32};
  EXPECT_TRUE(checkpoint->require("lm_head.weight", shape).ok());
  const int64_t wrong[] = {64, 33};
  EXPECT_THAT(checkpoint->require("lm_head.weight", wrong).error().message,
              HasSubstr("lm_head.weight: expected shape [64, 33], found [64, 32]"));
  EXPECT_EQ(checkpoint->require("nothing", shape).error().code, Code::kNotFound);
}

TEST(Checkpoint, AGgufFileIsReadByItselfOrAsTheOnlyOneOfAFolder) {
  for (const char* name : {"gguf/llama", "gguf/llama/model.gguf"}) {
    const auto checkpoint = open_checkpoint(test_data(name));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->container, Checkpoint::Container::kGguf);
    EXPECT_EQ(checkpoint->path.filename(), "model.gguf");
    EXPECT_EQ(checkpoint->gguf["tokenizer.ggml.tokens"].size(), 64u);
    EXPECT_EQ(checkpoint->find("blk.0.attn_q.weight")->type, StorageType::kQ4_0);
  }
}

TEST(Checkpoint, ShardsAreReadThroughTheirIndex) {
  const TempFolder folder;
  const EditableCheckpoint source("tiny/llama-untied");
  source.write(folder, 3);
  const auto checkpoint = open_checkpoint(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensors.size(), source.tensors.size());
  for (const auto& [name, tensor] : source.tensors) {
    EXPECT_TRUE(std::ranges::equal(checkpoint->find(name)->data, tensor.data)) << name;
  }
}

TEST(Checkpoint, AMissingShardIsNamed) {
  const TempFolder folder;
  EditableCheckpoint("tiny/llama-untied").write(folder, 3);
  std::filesystem::remove(folder.path() / "model-00002-of-00003.safetensors");
  const Error error = problem(folder.path());
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("model-00002-of-00003.safetensors"));
}

TEST(Checkpoint, ATensorThatIsNotInItsShardIsNamed) {
  const TempFolder folder;
  EditableCheckpoint("tiny/llama-untied").write(folder, 2);
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"nowhere": "model-00001-of-00002.safetensors"}})");
  EXPECT_THAT(problem(folder.path()).message, HasSubstr("'nowhere' is not in"));
}

TEST(Checkpoint, ShardNamesThatLeadOutOfTheFolderAreRefused) {
  const TempFolder folder;
  folder.write("config.json", "{}");
  for (const char* name : {"../x.safetensors", "/etc/x.safetensors", "a/b.safetensors", "..", "", "x.bin",
                           ".hidden.safetensors", "a\\\\b.safetensors", "nul\\u0000.safetensors"}) {
    folder.write("model.safetensors.index.json", fmt::format(R"({{"weight_map": {{"a": "{}"}}}})", name));
    const Error error = problem(folder.path());
    EXPECT_EQ(error.code, Code::kCorrupt) << name;
    EXPECT_THAT(error.message, HasSubstr("plain name")) << name;
  }
  for (const char* index : {"[]", "{", "{}", R"({"weight_map": []})", R"({"weight_map": {"a": 5}})", ""}) {
    folder.write("model.safetensors.index.json", index);
    EXPECT_EQ(problem(folder.path()).code, Code::kCorrupt) << index;
  }
}

TEST(Checkpoint, PickledWeightsAreRefusedWithWhatToDo) {
  const TempFolder folder;
  folder.write("config.json", "{}");
  for (const char* name : {"consolidated.00.pth", "model.pt", "pytorch_model.bin"}) {
    folder.write(name, "pickle");
    for (const auto& path : {folder.path(), folder.path() / name}) {
      const Error error = problem(path);
      EXPECT_EQ(error.code, Code::kUnsupported);
      EXPECT_THAT(error.message, HasSubstr(name));
      EXPECT_THAT(error.message, HasSubstr("safe_serialization=True"));
    }
    std::filesystem::remove(folder.path() / name);
  }
}

TEST(Checkpoint, WhatIsNoModelIsSaid) {
  const TempFolder folder;
  EXPECT_EQ(problem(folder.path() / "none").code, Code::kNotFound);
  EXPECT_THAT(problem(folder.path()).message, HasSubstr("holds no model"));
  folder.write("notes.txt", "hello");
  EXPECT_EQ(problem(folder.path() / "notes.txt").code, Code::kUnsupported);
  folder.write("a.gguf", "");
  folder.write("b.gguf", "");
  const Error several = problem(folder.path());
  EXPECT_EQ(several.code, Code::kInvalidArgument);
  EXPECT_THAT(several.message, HasSubstr("a.gguf, b.gguf"));
  std::filesystem::remove(folder.path() / "a.gguf");
  std::filesystem::remove(folder.path() / "b.gguf");
  folder.write("model.safetensors", "");
  EXPECT_THAT(problem(folder.path()).message, HasSubstr("no config.json"));
  EXPECT_THAT(problem(folder.path() / "model.safetensors").message, HasSubstr("name the folder"));
  folder.write("config.json", "[1]");
  EXPECT_THAT(problem(folder.path()).message, HasSubstr("not a JSON object"));
  folder.write("config.json", "{\"a\": ");
  EXPECT_THAT(problem(folder.path()).message, HasSubstr("not valid JSON"));
  folder.write("config.json", "{}");
  EXPECT_THAT(problem(folder.path()).message, HasSubstr("too few"));
}

TEST(Checkpoint, SeveralFilesWithoutAnIndexAreAmbiguous) {
  const TempFolder folder;
  EditableCheckpoint("tiny/llama-untied").write(folder, 2);
  std::filesystem::remove(folder.path() / "model.safetensors.index.json");
  EXPECT_EQ(problem(folder.path()).code, Code::kInvalidArgument);
  std::filesystem::rename(folder.path() / "model-00001-of-00002.safetensors",
                          folder.path() / "model.safetensors");
  EXPECT_TRUE(open_checkpoint(folder.path()).ok());  // a plain model.safetensors beside others is the one
}

TEST(Checkpoint, AHugeConfigIsRefused) {
  const TempFolder folder;
  EditableCheckpoint("tiny/llama-untied").write(folder);
  folder.write("config.json", std::string(5 << 20, '['));
  EXPECT_THAT(problem(folder.path()).message, HasSubstr("limit"));
  folder.write("config.json", std::string(1 << 20, '['));
  EXPECT_THAT(problem(folder.path()).message, HasSubstr("not valid JSON"));
}

TEST(Checkpoint, ADeeplyNestedConfigIsRefused) {
  const TempFolder folder;
  EditableCheckpoint("tiny/llama-untied").write(folder);
  const std::string deep = std::string(1 << 20, '[') + std::string(1 << 20, ']');
  folder.write("config.json", "{\"eos_token_id\": " + deep + "}");
  EXPECT_THAT(problem(folder.path()).message, HasSubstr("nests deeper than 64"));
}

TEST(Checkpoint, LinksIntoACacheAreFollowed) {
  const TempFolder cache;
  const TempFolder folder;
  EditableCheckpoint("tiny/llama-untied").write(cache);
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::filesystem::create_symlink(cache.path() / name, folder.path() / name);
  }
  EXPECT_TRUE(open_checkpoint(folder.path()).ok());
}

}  // namespace
}  // namespace whippet
