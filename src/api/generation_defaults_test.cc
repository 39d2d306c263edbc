#include "api/generation_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_folder.h"

namespace whippet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kQwen =
    R"({"do_sample": true, "eos_token_id": [151645, 151643], "repetition_penalty": 1.1,
                                  "temperature": 0.7, "top_k": 20, "top_p": 0.8})";

TEST(GenerationConfig, WhatItNamesBecomesTheDefault) {
  const GenerationDefaults defaults = parse_generation_config(nlohmann::json::parse(kQwen));
  EXPECT_EQ(defaults.params.temperature, 0.7f);
  EXPECT_EQ(defaults.params.top_p, 0.8f);
  EXPECT_EQ(defaults.params.top_k, 20);
  EXPECT_EQ(defaults.params.repetition_penalty, 1.1f);
  EXPECT_THAT(defaults.eos_ids, ElementsAre(151645, 151643));
  EXPECT_THAT(defaults.named, testing::Contains("temperature 0.7"));
  EXPECT_THAT(defaults.warnings, IsEmpty());
}

TEST(GenerationConfig, NoSamplingMeansGreedy) {
  const auto defaults = parse_generation_config({{"do_sample", false}, {"temperature", 0.7}});
  EXPECT_EQ(defaults.params.temperature, 0);
}

TEST(GenerationConfig, NonsenseIsLeftOutWithAWarning) {
  const auto defaults = parse_generation_config(
      {{"temperature", -1}, {"top_p", "high"}, {"top_k", 1e99}, {"eos_token_id", -1}, {"max_new_tokens", 0}});
  EXPECT_EQ(defaults.params, SamplingParams{});
  EXPECT_THAT(defaults.eos_ids, IsEmpty());
  EXPECT_FALSE(defaults.max_new_tokens.has_value());
  EXPECT_EQ(defaults.warnings.size(), 3u);
}

TEST(GenerationConfig, ChoiceIsAutoNoneOrAnotherFolder) {
  TestFolder folder;
  folder.write("model/generation_config.json", kQwen);
  folder.write("other/generation_config.json",
               R"({"temperature": 0.1, "eos_token_id": 7, "max_new_tokens": 99})");
  const auto model = folder.path() / "model";
  EXPECT_EQ(read_generation_defaults(model, "auto")->params.temperature, 0.7f);
  const auto none = read_generation_defaults(model, "none");
  EXPECT_EQ(none->params, SamplingParams{});
  EXPECT_THAT(none->eos_ids, ElementsAre(151645, 151643)) << "an answer must end whatever is chosen";
  const auto other = read_generation_defaults(model, (folder.path() / "other").string());
  EXPECT_EQ(other->params.temperature, 0.1f);
  EXPECT_EQ(other->max_new_tokens, 99);
  EXPECT_THAT(other->eos_ids, ElementsAre(7, 151645, 151643));
  EXPECT_THAT(read_generation_defaults(model, "absent").error().message,
              HasSubstr("give auto, none, or a folder"));
}

TEST(GenerationConfig, ABrokenFileIsAnErrorThatNamesIt) {
  TestFolder folder;
  folder.write("generation_config.json", "{");
  EXPECT_THAT(read_generation_defaults(folder.path(), "auto").error().message,
              HasSubstr("generation_config.json: no valid JSON"));
}

}  // namespace
}  // namespace whippet
