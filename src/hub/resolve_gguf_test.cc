// resolve_model: GGUF repositories, local paths, hostile hubs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/fake_hub.h"
#include "hub/hub.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct ResolveGgufTest : testing::Test {
  HubTestFolder folder;
  FakeHub hub;
  HubConfig config = hub.config(folder.path());

  Result<ResolvedModel> resolve(const std::string& name, PullPolicy pull = PullPolicy::kMissing) {
    ModelRequest request;
    request.name = name;
    request.pull = pull;
    return resolve_model(request, config);
  }
  Error failure(const std::string& name, PullPolicy pull = PullPolicy::kMissing) {
    const auto model = resolve(name, pull);
    EXPECT_FALSE(model.ok());
    return model.ok() ? make_error(Code::kCancelled, "no failure") : model.error();
  }
  void add_ggufs() {
    for (const char* name : {"Tiny-Q4_0.gguf", "Tiny-Q8_0.gguf", "Tiny-Q4_K_M.gguf"})
      hub.add(name, name, true);
    hub.add("README.md", "#");
  }
};

TEST_F(ResolveGgufTest, ATagFetchesOneFile) {
  add_ggufs();
  const auto model = resolve("org/tiny:q4_k_m");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->path.filename(), "Tiny-Q4_K_M.gguf");
  EXPECT_EQ(model->name, "hf:org/tiny:q4_k_m");
  EXPECT_EQ(read_file(model->path), "Tiny-Q4_K_M.gguf");
  EXPECT_EQ(hub.server().requests().size(), 2u);
  EXPECT_EQ(resolve("org/tiny:Q4_K_M")->path, model->path);
  EXPECT_EQ(hub.server().requests().size(), 2u);
  ASSERT_TRUE(resolve("org/tiny:Q8_0").ok());
  EXPECT_EQ(hub.server().requests().size(), 4u);
}

TEST_F(ResolveGgufTest, SeveralWithoutATagAreListedAndNothingIsFetched) {
  add_ggufs();
  const Error error = failure("org/tiny");
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  for (const char* name : {"Tiny-Q4_0.gguf", "Tiny-Q8_0.gguf", "Tiny-Q4_K_M.gguf"}) {
    EXPECT_THAT(error.message, HasSubstr(name));
  }
  EXPECT_EQ(hub.server().count("/resolve/"), 0u);
}

TEST_F(ResolveGgufTest, ASingleFileNeedsNoTag) {
  hub.add("Tiny.gguf", "x", true);
  const auto model = resolve("org/tiny");
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->path.filename(), "Tiny.gguf");
  EXPECT_EQ(resolve("org/tiny", PullPolicy::kNever)->path, model->path);
}

TEST_F(ResolveGgufTest, PickledOrSplitModelsAreRefusedBeforeAnyDownload) {
  hub.add("pytorch_model.bin", "x", true);
  hub.add("config.json", "{}");
  EXPECT_THAT(failure("org/tiny").message, HasSubstr("pytorch_model.bin"));
  hub.add("Tiny-Q4_0-00001-of-00002.gguf", "x", true);
  hub.add("Tiny-Q4_0-00002-of-00002.gguf", "x", true);
  EXPECT_EQ(failure("org/tiny:Q4_0").code, Code::kUnsupported);
  EXPECT_EQ(hub.server().count("/resolve/"), 0u);
}

TEST_F(ResolveGgufTest, AHostileFileNameIsRefusedWhole) {
  for (const char* name :
       {"../../evil.gguf", "/etc/evil.gguf", "a/../../evil.gguf", "a\\..\\evil.gguf", "..", ""}) {
    FakeHub evil;
    evil.add(name, "x", true);
    evil.add("good.gguf", "x", true);
    config = evil.config(folder.path());
    EXPECT_EQ(failure("org/tiny").code, Code::kCorrupt) << name;
    EXPECT_EQ(evil.server().count("/resolve/"), 0u);
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().string().find("evil"), std::string::npos) << entry.path();
  }
}

TEST_F(ResolveGgufTest, HostileJsonIsAnErrorAndNoCrash) {
  const std::string deep = std::string(200'000, '[');
  const std::vector<std::string> bodies = {
      "",
      "null",
      "[]",
      "{",
      "\xff\xfe",
      deep,
      "{\"siblings\": 3}",
      "{\"siblings\": []}",
      "{\"siblings\": [null, 3]}",
      R"({"sha": "../../x", "siblings": [{"rfilename": "a.gguf"}]})",
      R"({"sha": ["x"], "siblings": [{"rfilename": 7, "size": -1, "lfs": [], "blobId": {}}]})",
      R"({"sha": "0123456789abcdef0123456789abcdef01234567", "siblings": [{"rfilename": "a.gguf",
          "size": 18446744073709551615, "lfs": {"sha256": "zz", "size": 18446744073709551615}}]})",
      R"({"sha": "0123456789abcdef0123456789abcdef01234567", "siblings": [
          {"rfilename": "a.gguf", "size": 1e300}]})"};
  for (const std::string& body : bodies) {
    hub.fail("api", {200, body});
    EXPECT_FALSE(resolve("org/tiny").ok()) << body.substr(0, 80);
  }
}

TEST_F(ResolveGgufTest, AnEmptyAnnouncedHugeFileIsRefusedByDisk) {
  config.free_bytes = [](const fs::path&) { return uint64_t{1} << 40; };
  hub.fail("api",
           {200, R"({"sha": "0123456789abcdef0123456789abcdef01234567", "siblings": [{"rfilename": "a.gguf",
      "size": 9000000000000000000, "blobId": "0123456789abcdef0123456789abcdef01234567"}]})"});
  EXPECT_EQ(failure("org/tiny").code, Code::kResourceExhausted);
}

TEST_F(ResolveGgufTest, LocalPathsAreTakenAsTheyAre) {
  const fs::path model = folder.path() / "mine";
  write_file(model / "config.json", "{}");
  EXPECT_EQ(resolve(model.string())->path, model);
  write_file(folder.path() / "x.gguf", "x");
  EXPECT_EQ(resolve((folder.path() / "x.gguf").string())->path, folder.path() / "x.gguf");
  write_file(folder.path() / "tokens" / "tokenizer.json", "{}");
  EXPECT_EQ(resolve((folder.path() / "tokens").string())->path, folder.path() / "tokens");
  EXPECT_EQ(resolve(model.string())->revision, "");
  EXPECT_EQ(hub.server().requests().size(), 0u);
}

TEST_F(ResolveGgufTest, ALocalFolderOfGgufsNeedsATagWhenThereAreSeveral) {
  const fs::path ggufs = folder.path() / "ggufs";
  write_file(ggufs / "a-Q4_0.gguf", "x");
  EXPECT_EQ(resolve(ggufs.string())->path, ggufs / "a-Q4_0.gguf");
  write_file(ggufs / "a-Q8_0.gguf", "x");
  EXPECT_EQ(failure(ggufs.string()).code, Code::kInvalidArgument);
  EXPECT_EQ(resolve(ggufs.string() + ":q8_0")->path, ggufs / "a-Q8_0.gguf");
  EXPECT_EQ(failure(ggufs.string() + ":Q2_K").code, Code::kNotFound);
}

TEST_F(ResolveGgufTest, APathThatIsNotThereIsNoLookUp) {
  const Error error = failure("./no/such/model");
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_EQ(hub.server().requests().size(), 0u);
}

TEST_F(ResolveGgufTest, ATypoIsMetWithNearNames) {
  hub.add("Tiny.gguf", "x", true);
  ASSERT_TRUE(resolve("org/tiny").ok());
  EXPECT_THAT(failure("tinny").message, HasSubstr("Did you mean hf:org/tiny?"));
  EXPECT_THAT(failure("org/tyni").message, HasSubstr("Did you mean hf:org/tiny?"));
  EXPECT_THAT(failure("smolm2").message, HasSubstr("Did you mean smollm2?"));
}

}  // namespace
}  // namespace whippet
