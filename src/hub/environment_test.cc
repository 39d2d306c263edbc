#include "hub/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/fake_hub.h"
#include "hub/hub.h"

namespace whippet {
namespace {

using testing::HasSubstr;
using testing::Not;

using Variables = std::map<std::string, std::string>;

HubConfig read(Variables variables) {
  variables.emplace("HOME", "/home/me");
  return hub_config_from_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Environment, DefaultsAreTheStandardPlaces) {
  const HubConfig config = read({});
  EXPECT_EQ(config.hf_endpoint, "https://huggingface.co");
  EXPECT_EQ(config.hf_cache, "/home/me/.cache/huggingface/hub");
  EXPECT_EQ(config.whippet_cache, "/home/me/.cache/whippet");
  EXPECT_EQ(config.pypi_index, "https://pypi.org/simple");
  EXPECT_EQ(config.hf_token, "");
  EXPECT_FALSE(config.offline);
  EXPECT_TRUE(config.ca_bundle.empty());
}

TEST(Environment, TheCacheFollowsHubCacheThenHomeThenXdg) {
  EXPECT_EQ(read({{"XDG_CACHE_HOME", "/x"}}).hf_cache, "/x/huggingface/hub");
  EXPECT_EQ(read({{"XDG_CACHE_HOME", "/x"}}).whippet_cache, "/x/whippet");
  EXPECT_EQ(read({{"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "/h"}}).hf_cache, "/h/hub");
  EXPECT_EQ(read({{"HF_HOME", "~/h"}}).hf_cache, "/home/me/h/hub");
  EXPECT_EQ(read({{"HF_HOME", "/h"}, {"HF_HUB_CACHE", "/c"}}).hf_cache, "/c");
  EXPECT_EQ(read({{"HF_HOME", ""}}).hf_cache, "/home/me/.cache/huggingface/hub");
  EXPECT_EQ(read({{"HF_HUB_CACHE", "/c"}}).sources.at("hf_cache"), "HF_HUB_CACHE");
}

TEST(Environment, TheTokenComesFromTheVariableOrTheLoginFile) {
  const HubTestFolder folder;
  write_file(folder.path() / "token", "hf_file\n");
  write_file(folder.path() / "elsewhere", " hf_other \n");
  const std::string home = folder.path().string();
  EXPECT_EQ(read({{"HF_TOKEN", "hf_env\n"}, {"HF_HOME", home}}).hf_token, "hf_env");
  EXPECT_EQ(read({{"HF_HOME", home}}).hf_token, "hf_file");
  EXPECT_EQ(read({{"HF_HOME", home}, {"HF_TOKEN_PATH", home + "/elsewhere"}}).hf_token, "hf_other");
  EXPECT_EQ(read({{"HF_TOKEN_PATH", home + "/missing"}}).hf_token, "");
}

TEST(Environment, EndpointsLoseTheirSlashAndGetAScheme) {
  const HubConfig config = read({{"HF_ENDPOINT", "https://mirror.example/"},
                                 {"PIP_INDEX_URL", "https://me:pw@index.example/simple/"},
                                 {"MODELSCOPE_DOMAIN", "www.modelscope.ai"}});
  EXPECT_EQ(config.hf_endpoint, "https://mirror.example");
  EXPECT_EQ(config.pypi_index, "https://me:pw@index.example/simple");
  EXPECT_EQ(config.ms_endpoint, "https://www.modelscope.ai");
}

TEST(Environment, OfflineAndCertificates) {
  for (const char* value : {"1", "ON", "yes", "True"})
    EXPECT_TRUE(read({{"HF_HUB_OFFLINE", value}}).offline) << value;
  for (const char* value : {"0", "off", ""}) EXPECT_FALSE(read({{"HF_HUB_OFFLINE", value}}).offline) << value;
  EXPECT_EQ(read({{"SSL_CERT_FILE", "/a"}, {"REQUESTS_CA_BUNDLE", "/b"}}).ca_bundle, "/a");
  EXPECT_EQ(read({{"CURL_CA_BUNDLE", "/c"}, {"SSL_CERT_FILE", "/a"}}).ca_bundle, "/c");
}

TEST(Environment, TheDescriptionHasNoSecrets) {
  const HubConfig config = read({{"HF_TOKEN", "hf_secret"},
                                 {"MODELSCOPE_API_TOKEN", "ms_secret"},
                                 {"PIP_INDEX_URL", "https://me:pw_secret@index.example/simple"}});
  bool token_seen = false;
  for (const HubSetting& setting : describe_settings(config)) {
    EXPECT_THAT(setting.value, Not(HasSubstr("secret"))) << setting.name;
    EXPECT_FALSE(setting.value.empty()) << setting.name;
    token_seen |=
        setting.name == "Hugging Face token" && setting.value == "set" && setting.source == "HF_TOKEN";
  }
  EXPECT_TRUE(token_seen);
}

}  // namespace
}  // namespace whippet
