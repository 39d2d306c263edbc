#include "hub/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/fake_hub.h"
#include "hub/retry.h"
#include "hub/url.h"

namespace whippet {
namespace {

using testing::HasSubstr;
using testing::Not;

const HubTestFolder& folder() {
  static const HubTestFolder instance;
  return instance;
}

struct HttpTest : testing::Test {
  HubConfig config = test_config(folder().path());
  HttpClient client{config};

  HttpRequest request(const std::string& url) {
    HttpRequest out;
    out.url = url;
    out.secret = "Authorization: Bearer secret";
    return out;
  }
};

FakeResponse redirect(const std::string& location, int status = 302) {
  return {status, "", {{"Location", location}}};
}

TEST_F(HttpTest, ARelativeRedirectKeepsTheToken) {
  FakeServer server([](const FakeRequest& seen) {
    return seen.path == "/a" ? redirect("/b/c?x=1", 307) : FakeResponse{200, "body"};
  });
  const auto response = client.send(request(server.url() + "/a"));
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->body, "body");
  EXPECT_EQ(server.requests().at(1).target, "/b/c?x=1");
  EXPECT_EQ(server.requests().at(1).header("authorization"), "Bearer secret");
}

TEST_F(HttpTest, ARedirectToAnotherHostNeverSeesTheToken) {
  FakeServer cdn([](const FakeRequest&) { return FakeResponse{200, "body"}; });
  FakeServer server([&](const FakeRequest&) { return redirect(cdn.url("localhost") + "/file?signature=s"); });
  ASSERT_EQ(client.send(request(server.url() + "/a"))->body, "body");
  EXPECT_EQ(server.requests().at(0).header("authorization"), "Bearer secret");
  const FakeRequest seen = cdn.requests().at(0);
  for (const auto& [name, value] : seen.headers) EXPECT_THAT(value, Not(HasSubstr("secret"))) << name;
}

TEST_F(HttpTest, AnotherPortOrSchemeOfTheHostIsAnotherOrigin) {
  FakeServer other([](const FakeRequest&) { return FakeResponse{200, "body"}; });
  FakeServer server([&](const FakeRequest&) { return redirect(other.url() + "/file"); });
  ASSERT_EQ(client.send(request(server.url() + "/a"))->body, "body");
  EXPECT_EQ(other.requests().at(0).header("authorization"), "");
}

TEST_F(HttpTest, TheTokenStaysAwayAlsoOnTheWayBack) {
  std::string cdn_url;
  FakeServer server([&](const FakeRequest& seen) {
    return seen.path == "/a" ? redirect(cdn_url + "/b") : FakeResponse{200, "body"};
  });
  FakeServer cdn([&](const FakeRequest&) { return redirect(server.url() + "/c"); });
  cdn_url = cdn.url("localhost");
  ASSERT_EQ(client.send(request(server.url() + "/a"))->body, "body");
  EXPECT_EQ(cdn.requests().at(0).header("authorization"), "");
}

TEST_F(HttpTest, CredentialsInARedirectAreNotUsed) {
  FakeServer server([](const FakeRequest& seen) {
    const std::string host = seen.header("host");
    return seen.path == "/a" ? redirect("http://user:password@" + host + "/b") : FakeResponse{200, "body"};
  });
  HttpRequest plain;
  plain.url = server.url() + "/a";
  ASSERT_TRUE(client.send(plain).ok());
  EXPECT_EQ(server.requests().at(1).header("authorization"), "");
}

TEST_F(HttpTest, RedirectsEndAndLeaveHttpOnly) {
  FakeServer loop([](const FakeRequest&) { return redirect("/again"); });
  EXPECT_THAT(client.send(request(loop.url())).error().message, HasSubstr("redirects more than"));
  FakeServer file([](const FakeRequest&) { return redirect("file:///etc/passwd"); });
  EXPECT_FALSE(client.send(request(file.url())).ok());
  FakeServer gopher([](const FakeRequest&) { return redirect("gopher://localhost/x"); });
  EXPECT_FALSE(client.send(request(gopher.url())).ok());
  EXPECT_EQ(client.send(request("file:///etc/passwd")).error().code, Code::kInvalidArgument);
}

TEST_F(HttpTest, AHeadMayStopAtTheOriginsEdge) {
  FakeServer server([](const FakeRequest& seen) {
    return seen.path == "/a" ? redirect("/b") : redirect("http://localhost:1/c");
  });
  HttpRequest head = request(server.url() + "/a");
  head.head = true;
  head.leave_origin = false;
  const auto response = client.send(head);
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 302);
  EXPECT_EQ(response->header("location"), "http://localhost:1/c");
}

TEST_F(HttpTest, ALineBreakInASecretIsNoSecondHeader) {
  FakeServer server([](const FakeRequest&) { return FakeResponse{200, "x"}; });
  HttpRequest bad = request(server.url());
  bad.secret = "Authorization: Bearer a\r\nX-Evil: 1";
  ASSERT_TRUE(client.send(bad).ok());
  EXPECT_EQ(server.requests().at(0).header("x-evil"), "");
}

TEST_F(HttpTest, AnEndlessTextIsCutOff) {
  const std::string huge((33u << 20), 'x');
  FakeServer server([&](const FakeRequest&) { return FakeResponse{200, huge}; });
  EXPECT_EQ(client.send(request(server.url())).error().code, Code::kCorrupt);
}

TEST_F(HttpTest, NoServerIsUnavailableAndACancelIsCancelled) {
  EXPECT_EQ(client.send(request("http://127.0.0.1:1/")).error().code, Code::kUnavailable);
  std::atomic<bool> cancelled{true};
  HubConfig stopped = config;
  stopped.cancelled = &cancelled;
  HttpClient stopped_client(stopped);
  FakeServer server([](const FakeRequest&) { return FakeResponse{200, std::string(1 << 20, 'x')}; });
  EXPECT_EQ(stopped_client.send(request(server.url())).error().code, Code::kCancelled);
}

TEST_F(HttpTest, RetriesHonourRetryAfterAndEnd) {
  std::vector<std::chrono::milliseconds> pauses;
  config.sleep = [&](std::chrono::milliseconds pause) { pauses.push_back(pause); };
  int calls = 0;
  FakeServer server([&](const FakeRequest&) -> FakeResponse {
    ++calls;
    if (calls == 1) return {429, "", {{"Retry-After", "7"}}};
    if (calls == 2) return {503, "", {{"Retry-After", "99999999999999"}}};
    if (calls == 3) return {200, "", {}, 0, true, false};
    return {200, "fine"};
  });
  EXPECT_EQ(send_with_retries(client, request(server.url()), config)->body, "fine");
  ASSERT_EQ(pauses.size(), 3u);
  EXPECT_EQ(pauses[0], std::chrono::seconds(7));
  EXPECT_LE(pauses[1], std::chrono::seconds(60));

  FakeServer broken([](const FakeRequest&) { return FakeResponse{500, "oops"}; });
  EXPECT_EQ(send_with_retries(client, request(broken.url()), config)->status, 500);
  EXPECT_EQ(broken.requests().size(), static_cast<size_t>(config.max_attempts));

  FakeServer missing([](const FakeRequest&) { return FakeResponse{404, "no"}; });
  EXPECT_EQ(send_with_retries(client, request(missing.url()), config)->status, 404);
  EXPECT_EQ(missing.requests().size(), 1u);
}

TEST(Url, ShowsNoSecrets) {
  EXPECT_EQ(display_url("https://me:pw@host/a/b?token=1#x"), "https://host/a/b");
  EXPECT_EQ(display_url("https://host/a@b"), "https://host/a@b");
  const auto url = parse_url("https://me:p%40w@Host/a");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->credentials, "me:p@w");
  EXPECT_EQ(url->text, "https://Host/a");
  EXPECT_THAT(parse_url("ftp://me:pw@host/").error().message, Not(HasSubstr("pw")));
  EXPECT_FALSE(parse_url("").ok());
  EXPECT_FALSE(parse_url("host/path").ok());
}

TEST(Url, JoinsAndComparesOrigins) {
  EXPECT_EQ(join_url("https://h/simple/a/", "../../files/a.whl#sha256=1")->text, "https://h/files/a.whl");
  EXPECT_EQ(join_url("https://h/simple/a/", "https://f/x")->text, "https://f/x");
  const auto share = [](const char* a, const char* b) {
    return may_share_secret(*parse_url(a), *parse_url(b));
  };
  EXPECT_TRUE(share("https://h/a", "https://H:443/b"));
  EXPECT_TRUE(share("http://h/a", "https://h/b"));
  EXPECT_FALSE(share("https://h/a", "http://h/b"));
  EXPECT_FALSE(share("https://h/a", "https://h:8443/b"));
  EXPECT_FALSE(share("https://h/a", "https://h.evil/b"));
  EXPECT_FALSE(share("http://h:8080/a", "https://h/b"));
}

TEST(Url, EncodesPathsAndBase64) {
  EXPECT_EQ(encode_path("a b/\xc3\xa9+c"), "a%20b/%C3%A9%2Bc");
  EXPECT_EQ(encode_segment("refs/pr/1"), "refs%2Fpr%2F1");
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("\xff\xfe"), "//4=");
}

}  // namespace
}  // namespace whippet
