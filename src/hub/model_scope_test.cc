// The ModelScope hub, against a server that answers as it does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "hub/fake_hub.h"
#include "hub/hub.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

struct ModelScopeTest : testing::Test {
  HubTestFolder folder;
  HubConfig config = test_config(folder.path());
  std::map<std::string, std::string> files = {{"config.json", "{}"},
                                              {"tokenizer.json", "{ }"},
                                              {"model.safetensors", noise(50'000)},
                                              {"README.md", "#"}};
  int status = 200;
  FakeServer server{[this](const FakeRequest& request) { return answer(request); }};

  ModelScopeTest() { config.ms_endpoint = server.url(); }

  FakeResponse answer(const FakeRequest& request) const {
    if (status != 200) return {status, R"({"Code": 10010205001, "Message": "denied", "Success": false})"};
    if (request.path == "/api/v1/models/org/tiny/repo/files") {
      json list = json::array({{{"Path", "onnx"}, {"Type", "tree"}}});
      for (const auto& [path, content] : files) {
        list.push_back(
            {{"Path", path}, {"Type", "blob"}, {"Size", content.size()}, {"Sha256", sha256_of(content)}});
      }
      return {200, json{{"Code", 200}, {"Data", {{"Files", list}}}, {"Success", true}}.dump()};
    }
    const size_t at = request.target.find("FilePath=");
    if (request.path != "/api/v1/models/org/tiny/repo" || at == std::string::npos) return {404, "{}"};
    return serve_file(request, files.at(request.target.substr(at + 9)));
  }
  Result<ResolvedModel> resolve(const std::string& name, PullPolicy pull = PullPolicy::kMissing) {
    ModelRequest request;
    request.name = name;
    request.pull = pull;
    return resolve_model(request, config);
  }
};

TEST_F(ModelScopeTest, PullsWhatIsNeededOnceIntoItsOwnCache) {
  const auto model = resolve("ms:org/tiny");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_TRUE(read_file(model->path / "model.safetensors") == files.at("model.safetensors"));
  EXPECT_EQ(model->name, "ms:org/tiny");
  EXPECT_THAT(model->path.string(), HasSubstr((config.whippet_cache / "models" / "modelscope").string()));
  EXPECT_FALSE(fs::exists(config.hf_cache));
  EXPECT_FALSE(fs::exists(model->path / "README.md"));
  EXPECT_THAT(server.requests().at(0).target, HasSubstr("Revision=master&Recursive=true"));
  const size_t before = server.requests().size();
  EXPECT_EQ(resolve("ms:org/tiny", PullPolicy::kNever)->path, model->path);
  EXPECT_EQ(server.requests().size(), before);
}

TEST_F(ModelScopeTest, LatestSeesAChangedFile) {
  const auto old_model = resolve("ms:org/tiny");
  ASSERT_TRUE(old_model.ok());
  files["config.json"] = R"({"a": 1})";
  const auto model = resolve("ms:org/tiny", PullPolicy::kLatest);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_NE(model->path, old_model->path);
  EXPECT_EQ(read_file(model->path / "config.json"), R"({"a": 1})");
  EXPECT_EQ(read_file(old_model->path / "config.json"), "{}");
  EXPECT_EQ(resolve("ms:org/tiny@master", PullPolicy::kNever)->path, model->path);
}

TEST_F(ModelScopeTest, ItsErrorsNameItsPageAndNoOtherHubIsAsked) {
  FakeServer other([](const FakeRequest&) { return FakeResponse{200, "{}"}; });
  config.hf_endpoint = other.url();
  for (const int refused : {401, 403}) {
    status = refused;
    const Error error = resolve("ms:org/tiny").error();
    EXPECT_EQ(error.code, Code::kUnauthenticated);
    EXPECT_THAT(error.message, HasSubstr("https://www.modelscope.cn/models/org/tiny"));
  }
  status = 404;
  EXPECT_EQ(resolve("ms:org/tiny").error().code, Code::kNotFound);
  EXPECT_EQ(other.requests().size(), 0u);
}

TEST_F(ModelScopeTest, ItsTokenIsItsOwn) {
  config.ms_token = "ms-secret";
  config.hf_token = "hf-secret";
  ASSERT_TRUE(resolve("ms:org/tiny").ok());
  for (const FakeRequest& request : server.requests()) {
    EXPECT_EQ(request.header("cookie"), "m_session_id=ms-secret");
    EXPECT_THAT(request.header("authorization"), Not(HasSubstr("hf-secret")));
  }
}

TEST_F(ModelScopeTest, AWrongChecksumLeavesNoModel) {
  struct Lying {
    FakeResponse operator()(const FakeRequest& request) const {
      FakeResponse response = honest->answer(request);
      if (request.target.find("model.safetensors") != std::string::npos) response.body = noise(50'000, 9);
      return response;
    }
    const ModelScopeTest* honest;
  };
  FakeServer lying(Lying{this});
  config.ms_endpoint = lying.url();
  EXPECT_EQ(resolve("ms:org/tiny").error().code, Code::kCorrupt);
  EXPECT_EQ(resolve("ms:org/tiny", PullPolicy::kNever).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace whippet
