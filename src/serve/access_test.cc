#include "serve/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace whippet::serve {
namespace {

using testing::HasSubstr;

TEST(Access, BeyondLoopbackSomebodyMustHaveSaidSo) {
  ServerConfig config;
  EXPECT_TRUE(Access::check(config).ok());
  for (const char* host : {"0.0.0.0", "::", "192.168.1.2", "example.org", "128.0.0.1", "127.example.org"}) {
    config.host = host;
    ASSERT_FALSE(Access::check(config).ok()) << host;
    EXPECT_THAT(Access::check(config).error().message, HasSubstr("--api-key"));
  }
  for (const char* host : {"localhost", "127.0.0.1", "127.8.0.1", "::1", "[::1]"}) {
    config.host = host;
    EXPECT_TRUE(Access::check(config).ok()) << host;
  }
  config.host = "0.0.0.0";
  config.allow_unauthenticated = true;
  EXPECT_TRUE(Access::check(config).ok());
  config.allow_unauthenticated = false;
  config.api_keys = {"k"};
  EXPECT_TRUE(Access::check(config).ok());
  config.api_keys = {"k", ""};
  EXPECT_FALSE(Access::check(config).ok());
}

TEST(Access, AnyOfTheKeysOpensAndNothingElse) {
  ServerConfig config;
  config.api_keys = {"first", "second key"};
  const Access access(config);
  EXPECT_TRUE(access.asks_for_key());
  EXPECT_TRUE(access.opens("Bearer first"));
  EXPECT_TRUE(access.opens("bearer second key"));
  for (const char* wrong : {"", "first", "Bearer", "Bearer ", "Bearer firs", "Bearer firstx", "Basic first",
                            "Bearer  first", "Bearer FIRST"})
    EXPECT_FALSE(access.opens(wrong)) << wrong;
  EXPECT_FALSE(Access(ServerConfig()).asks_for_key());
}

TEST(Access, OnThisMachineOnlyItsOwnNamesAreHosts) {
  const Access access{ServerConfig()};
  for (const char* host : {"localhost", "LocalHost:8000", "127.0.0.1:8000", "[::1]:8000", "10.1.2.3:80"})
    EXPECT_TRUE(access.host_allowed(host)) << host;
  for (const char* host :
       {"evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example"})
    EXPECT_FALSE(access.host_allowed(host)) << host;
}

TEST(Access, HostsAreAsTheFlagSays) {
  ServerConfig config;
  config.allowed_hosts = {"llm.example"};
  EXPECT_TRUE(Access(config).host_allowed("llm.example:443"));
  EXPECT_FALSE(Access(config).host_allowed("localhost"));
  config.allowed_hosts = {"*"};
  EXPECT_TRUE(Access(config).host_allowed("whatever"));
  // Beyond loopback a key is what protects.
  ServerConfig open;
  open.host = "0.0.0.0";
  open.api_keys = {"k"};
  EXPECT_TRUE(Access(open).host_allowed("service.namespace.svc:8000"));
  open.api_keys = {};
  open.allow_unauthenticated = true;
  EXPECT_FALSE(Access(open).host_allowed("evil.example"));
}

TEST(Access, OriginsAreOffUnlessListed) {
  EXPECT_FALSE(Access(ServerConfig()).cors());
  EXPECT_FALSE(Access(ServerConfig()).origin_allowed("http://a.example"));
  ServerConfig config;
  config.allowed_origins = {"https://a.example"};
  EXPECT_TRUE(Access(config).cors());
  EXPECT_TRUE(Access(config).origin_allowed("https://A.example"));
  EXPECT_FALSE(Access(config).origin_allowed("http://a.example"));
  config.allowed_origins = {"*"};
  EXPECT_TRUE(Access(config).origin_allowed("null"));
}

}  // namespace
}  // namespace whippet::serve
