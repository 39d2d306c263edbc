// resolve_model against a server that plays the Hugging Face hub, faults included.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "hub/fake_hub.h"
#include "hub/hub.h"
#include "hub/repo_cache.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

struct ResolveTest : testing::Test {
  HubTestFolder folder;
  FakeHub hub;
  HubConfig config = hub.config(folder.path());
  const fs::path repo = config.hf_cache / "models--org--tiny";
  const fs::path snapshot = repo / "snapshots" / hub.commit;

  ResolveTest() { hub.add_model(); }

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
  // Whatever went wrong: the model is not taken from disk afterwards.
  void expect_nothing_on_disk(const std::string& name = "org/tiny") {
    EXPECT_EQ(failure(name, PullPolicy::kNever).code, Code::kNotFound);
  }
};

TEST_F(ResolveTest, PullsWhatIsNeededIntoTheStandardLayout) {
  const auto model = resolve("org/tiny");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->path, snapshot);
  EXPECT_EQ(model->name, "hf:org/tiny");
  EXPECT_EQ(model->revision, hub.commit);
  EXPECT_EQ(model->licence, "apache-2.0");
  EXPECT_EQ(read_file(repo / "refs" / "main"), hub.commit);
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    EXPECT_TRUE(read_file(snapshot / name) == hub.content_of(name)) << name;
    const bool large = std::string(name) == "model.safetensors";
    const std::string etag = large ? sha256_of(hub.content_of(name)) : git_sha1_of(hub.content_of(name));
    EXPECT_EQ(fs::read_symlink(snapshot / name), fs::path("../../blobs") / etag);
  }
  EXPECT_FALSE(fs::exists(snapshot / "README.md"));
  EXPECT_FALSE(fs::exists(snapshot / "pytorch_model.bin"));
  EXPECT_EQ(hub.server().count("GET "), 4u);
  EXPECT_EQ(hub.server().count("HEAD "), 0u);
}

TEST_F(ResolveTest, WhatIsThereNeedsNoRequest) {
  ASSERT_TRUE(resolve("org/tiny").ok());
  const size_t before = hub.server().requests().size();
  for (const char* name : {"org/tiny", "hf:org/tiny", "org/tiny@main",
                           "org/tiny@0123456789abcdef0123456789abcdef01234567", "org/tiny@01234567"}) {
    const auto model = resolve(name);
    ASSERT_TRUE(model.ok()) << name;
    EXPECT_EQ(model->path, snapshot);
  }
  config.offline = true;
  EXPECT_TRUE(resolve("org/tiny", PullPolicy::kLatest).ok());
  EXPECT_EQ(hub.server().requests().size(), before);
}

TEST_F(ResolveTest, ACacheAnotherToolWroteIsUsedWithoutARequest) {
  const std::string commit(40, 'a');
  for (const char* name : {"config.json", "tokenizer.model", "model.safetensors"}) {
    write_file(repo / "blobs" / (std::string("etag-") + name), name);
    fs::create_directories(repo / "snapshots" / commit);
    fs::create_symlink(std::string("../../blobs/etag-") + name, repo / "snapshots" / commit / name);
  }
  write_file(repo / "refs" / "main", commit);
  const auto model = resolve("org/tiny");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->path, repo / "snapshots" / commit);
  EXPECT_EQ(hub.server().requests().size(), 0u);
}

TEST_F(ResolveTest, ASnapshotThatLacksAFileIsCompleted) {
  ASSERT_TRUE(resolve("org/tiny").ok());
  fs::remove(fs::canonical(snapshot / "model.safetensors"));
  ASSERT_TRUE(resolve("org/tiny").ok());
  EXPECT_TRUE(read_file(snapshot / "model.safetensors") == hub.content_of("model.safetensors"));
  EXPECT_EQ(hub.server().count("GET /org/tiny/resolve/" + hub.commit + "/config.json"), 1u);
}

TEST_F(ResolveTest, LatestFollowsTheBranchAndFetchesOnlyWhatChanged) {
  ASSERT_TRUE(resolve("org/tiny").ok());
  hub.commit = std::string(40, 'b');
  hub.add("config.json", R"({"model_type": "qwen2"})");
  EXPECT_EQ(resolve("org/tiny")->path, snapshot);
  const auto model = resolve("org/tiny", PullPolicy::kLatest);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->revision, hub.commit);
  EXPECT_THAT(read_file(model->path / "config.json"), HasSubstr("qwen2"));
  EXPECT_EQ(hub.server().count("/model.safetensors"), 1u);
  EXPECT_EQ(resolve("org/tiny")->path, model->path);
}

TEST_F(ResolveTest, AnInterruptedUpdateLeavesTheOldModelInUse) {
  ASSERT_TRUE(resolve("org/tiny").ok());
  hub.commit = std::string(40, 'b');
  hub.add("model.safetensors", noise(1000, 9), true);
  hub.fail("model.safetensors", {404, ""});
  EXPECT_EQ(failure("org/tiny", PullPolicy::kLatest).code, Code::kNotFound);
  EXPECT_EQ(resolve("org/tiny", PullPolicy::kNever)->path, snapshot);
}

TEST_F(ResolveTest, ARevisionIsAskedForAndNoted) {
  ASSERT_TRUE(resolve("org/tiny@refs/pr/1").ok());
  EXPECT_EQ(read_file(repo / "refs" / "refs" / "pr" / "1"), hub.commit);
  EXPECT_FALSE(fs::exists(repo / "refs" / "main"));
  EXPECT_THAT(hub.server().requests().at(0).target, HasSubstr("/revision/refs%2Fpr%2F1?"));
  const Error missing = failure("org/tiny@nosuch");
  EXPECT_EQ(missing.code, Code::kNotFound);
  EXPECT_THAT(missing.message, HasSubstr("no such revision"));
}

TEST_F(ResolveTest, ABrokenConnectionIsResumed) {
  FakeResponse cut{200, hub.content_of("model.safetensors")};
  cut.cut_after = 1000;
  hub.fail("model.safetensors", cut);
  ASSERT_TRUE(resolve("org/tiny").ok());
  EXPECT_EQ(hub.server().requests().back().header("range"), "bytes=1000-");
}

TEST_F(ResolveTest, AConnectionThatStaysBrokenLeavesNoModel) {
  FakeResponse cut{200, hub.content_of("model.safetensors")};
  cut.cut_after = 1000;
  hub.ranges = false;
  for (int i = 0; i < 20; ++i) hub.fail("model.safetensors", cut);
  EXPECT_EQ(failure("org/tiny").code, Code::kUnavailable);
  expect_nothing_on_disk();
}

TEST_F(ResolveTest, AWrongChecksumLeavesNoModel) {
  hub.fail("model.safetensors", {200, noise(64 << 10, 77)});
  const Error error = failure("org/tiny");
  EXPECT_EQ(error.code, Code::kCorrupt);
  EXPECT_THAT(error.message, HasSubstr("model.safetensors"));
  expect_nothing_on_disk();
  EXPECT_TRUE(resolve("org/tiny").ok());
}

TEST_F(ResolveTest, AWrongChecksumOfASmallFileIsSeenToo) {
  hub.fail("config.json", {200, std::string(hub.content_of("config.json").size(), ' ')});
  EXPECT_EQ(failure("org/tiny").code, Code::kCorrupt);
  expect_nothing_on_disk();
}

TEST_F(ResolveTest, AGatedModelNamesItsLicencePage) {
  hub.token = "good";
  for (const int status : {401, 403}) {
    hub.fail("model.safetensors", {status, "", {{"X-Error-Code", "GatedRepo"}}});
    config.hf_token = "good";
    const Error error = failure("org/tiny");
    EXPECT_EQ(error.code, Code::kUnauthenticated);
    EXPECT_THAT(error.message, HasSubstr("https://huggingface.co/org/tiny"));
    EXPECT_THAT(error.message, HasSubstr("HF_TOKEN"));
  }
  expect_nothing_on_disk();
}

TEST_F(ResolveTest, ATokenIsSentAndAWrongOneIsSaidToBeWrong) {
  hub.token = "good";
  config.hf_token = "bad-secret";
  hub.fail("api", {401, ""});
  const Error wrong = failure("org/tiny");
  EXPECT_EQ(wrong.code, Code::kUnauthenticated);
  EXPECT_THAT(wrong.message, HasSubstr("refuses the token"));
  EXPECT_THAT(wrong.message, Not(HasSubstr("bad-secret")));
  config.hf_token = "";
  hub.fail("api", {401, ""});
  EXPECT_THAT(failure("org/tiny").message, HasSubstr("https://huggingface.co/org/tiny"));
  config.hf_token = "good";
  EXPECT_TRUE(resolve("org/tiny").ok());
}

TEST_F(ResolveTest, TheContentNetworkNeverSeesTheToken) {
  FakeServer cdn([this](const FakeRequest& request) {
    return serve_file(request, hub.content_of(request.path.substr(1)));
  });
  hub.token = config.hf_token = "secret";
  hub.cdn = cdn.url("localhost");
  FakeResponse cut{302, "", {{"Location", hub.cdn + "/model.safetensors?first"}}};
  hub.fail("model.safetensors", cut);
  ASSERT_TRUE(resolve("org/tiny").ok());
  ASSERT_EQ(cdn.requests().size(), 1u);
  for (const FakeRequest& request : cdn.requests()) {
    for (const auto& [name, value] : request.headers) EXPECT_THAT(value, Not(HasSubstr("secret"))) << name;
  }
}

TEST_F(ResolveTest, AMissingModelIsNotSoughtElsewhere) {
  FakeServer modelscope([](const FakeRequest&) { return FakeResponse{200, "{}"}; });
  config.ms_endpoint = config.pypi_index = modelscope.url();
  const Error error = failure("org/nosuch");
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("hf:org/nosuch"));
  hub.fail("api", {404, "not here"});
  EXPECT_EQ(failure("org/tiny").code, Code::kNotFound);
  config.hf_endpoint = "http://127.0.0.1:1";
  EXPECT_EQ(failure("org/tiny").code, Code::kUnavailable);
  EXPECT_EQ(modelscope.requests().size(), 0u);
}

TEST_F(ResolveTest, AMissingFileIsNamed) {
  hub.fail("tokenizer.json", {404, "", {{"X-Error-Code", "EntryNotFound"}}});
  const Error error = failure("org/tiny");
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("tokenizer.json"));
  expect_nothing_on_disk();
}

TEST_F(ResolveTest, ServerErrorsAreTriedAgain) {
  hub.fail("api", {500, ""});
  hub.fail("api", {429, "", {{"Retry-After", "1"}}});
  hub.fail("config.json", {503, ""});
  EXPECT_TRUE(resolve("org/tiny").ok());
}

TEST_F(ResolveTest, TooLittleDiskIsSaidBeforeAnyDownload) {
  config.free_bytes = [](const fs::path&) { return uint64_t{16 << 20}; };
  const Error error = failure("org/tiny");
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_THAT(error.message, HasSubstr("are needed"));
  EXPECT_EQ(hub.server().count("/resolve/"), 0u);
}

TEST_F(ResolveTest, OfflineNothingIsAsked) {
  config.offline = true;
  const Error error = failure("org/tiny");
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("HF_HUB_OFFLINE"));
  EXPECT_EQ(failure("org/tiny", PullPolicy::kLatest).code, Code::kNotFound);
  EXPECT_EQ(hub.server().requests().size(), 0u);
}

TEST_F(ResolveTest, AMirrorWithoutChecksumsInItsListingIsAskedForHeaders) {
  hub.checksums = false;
  FakeServer cdn([this](const FakeRequest& request) {
    return serve_file(request, hub.content_of(request.path.substr(1)));
  });
  hub.cdn = cdn.url("localhost");
  const auto model = resolve("org/tiny");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(fs::read_symlink(snapshot / "model.safetensors").filename(),
            sha256_of(hub.content_of("model.safetensors")));
  EXPECT_EQ(fs::read_symlink(snapshot / "config.json").filename(),
            git_sha1_of(hub.content_of("config.json")));
  EXPECT_EQ(cdn.count("HEAD"), 0u);
}

TEST_F(ResolveTest, ManyPullsAtOnceFetchEachFileOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto model = resolve("org/tiny");
      good += model.ok() && model->path == snapshot;
      EXPECT_TRUE(model.ok()) << model.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
  EXPECT_EQ(hub.server().count("GET /org/tiny/resolve/" + hub.commit + "/model.safetensors"), 1u);
}

TEST_F(ResolveTest, AnIncompleteRepositoryIsNotTakenForAModel) {
  FakeHub shards;
  shards.add("config.json", "{}");
  shards.add("tokenizer.json", "{}");
  shards.add("model.safetensors.index.json", R"({"weight_map": {"a": "model-00002-of-00002.safetensors"}})");
  shards.add("model-00001-of-00002.safetensors", "x", true);
  config = shards.config(folder.path());
  const Error error = failure("org/tiny");
  EXPECT_EQ(error.code, Code::kCorrupt);
  EXPECT_THAT(error.message, HasSubstr("not complete on the hub"));
  EXPECT_EQ(failure("org/tiny", PullPolicy::kNever).code, Code::kNotFound);
}

TEST_F(ResolveTest, AModelWithoutATokenizerIsRefusedBeforeAnyDownload) {
  FakeHub bare;
  bare.add("config.json", "{}");
  bare.add("model.safetensors", "x", true);
  config = bare.config(folder.path());
  EXPECT_THAT(failure("org/tiny").message, HasSubstr("no tokenizer"));
  EXPECT_EQ(bare.server().count("/resolve/"), 0u);
}

TEST_F(ResolveTest, ACacheThatCannotBeWrittenIsNamed) {
  write_file(folder.path() / "file", "");
  config.hf_cache = folder.path() / "file" / "hub";
  const Error error = failure("org/tiny");
  EXPECT_THAT(error.message, HasSubstr((folder.path() / "file").string()));
}

}  // namespace
}  // namespace whippet
