#include "serve/request_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace whippet::serve {
namespace {

using State = RequestReader::State;
using testing::HasSubstr;

constexpr uint64_t kMaxBody = 1000;

struct Read {
  std::vector<HttpRequest> requests;
  int heads = 0;
  int status = 0;  // of a failure
  std::string problem;
  size_t left = 0;  // bytes that no request took
};

// Feeds `bytes` in pieces of `step`.
Read read_all(const std::string& bytes, size_t step) {
  RequestReader reader(kMaxBody);
  Read result;
  std::string input;
  for (size_t at = 0; at < bytes.size(); at += step) {
    input += bytes.substr(at, step);
    for (;;) {
      size_t used = 0;
      const State state = reader.read(input, used);
      input.erase(0, used);
      if (state == State::kFailed) {
        result.status = reader.status();
        result.problem = reader.problem();
        return result;
      }
      if (state == State::kNeedMore) break;
      if (state == State::kHead) {
        ++result.heads;
        continue;
      }
      result.requests.push_back(reader.request());
      reader.reset();
    }
  }
  result.left = input.size();
  return result;
}

constexpr const char* kPost =
    "POST /v1/completions?x=1 HTTP/1.1\r\nHost: here:8000\r\nContent-Type: application/json\r\n"
    "Authorization: Bearer k\r\nX-Request-Id: abc\r\nContent-Length: 5\r\n\r\nhello";

TEST(RequestReader, ReadsHeadAndBodyHoweverTheyAreCut) {
  for (const size_t step : {1u, 2u, 7u, 50u, 1000u}) {
    const Read read = read_all(kPost, step);
    ASSERT_EQ(read.requests.size(), 1u) << step << read.problem;
    const HttpRequest& request = read.requests[0];
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path(), "/v1/completions");
    EXPECT_EQ(request.host, "here:8000");
    EXPECT_EQ(request.content_type, "application/json");
    EXPECT_EQ(request.authorization, "Bearer k");
    EXPECT_EQ(request.request_id, "abc");
    EXPECT_EQ(request.content_length, 5u);
    EXPECT_TRUE(request.has_body);
    EXPECT_TRUE(request.keep_alive);
    EXPECT_EQ(request.body, "hello");
    EXPECT_EQ(read.heads, 1);
  }
}

TEST(RequestReader, PipelinedRequestsComeOneAfterTheOther) {
  const std::string get = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const size_t step : {1u, 1000u}) {
    const Read read = read_all(get + kPost + "\r\n" + get + "GET /half", step);
    ASSERT_EQ(read.requests.size(), 3u);
    EXPECT_EQ(read.requests[0].path(), "/health");
    EXPECT_FALSE(read.requests[0].has_body);
    EXPECT_EQ(read.requests[1].body, "hello");
    EXPECT_EQ(read.requests[2].path(), "/health");
    EXPECT_EQ(read.status, 0);
  }
}

TEST(RequestReader, AChunkedBodyIsPutTogether) {
  const std::string head = "POST /tokenize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const size_t step : {1u, 3u, 1000u}) {
    const Read read = read_all(head + "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n", step);
    ASSERT_EQ(read.requests.size(), 1u) << read.problem;
    EXPECT_EQ(read.requests[0].body, "hello world");
    EXPECT_TRUE(read.requests[0].has_body);
  }
}

TEST(RequestReader, AChunkedBodyMayBeEmptyHoweverItIsCut) {
  const std::string head = "POST /tokenize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string last : {"0\r\n\r\n", "0;x=y\r\n\r\n", "0\r\nTrailer: y\r\n\r\n"})
    for (const size_t step : {1u, 2u, 3u, 4u, 1000u}) {
      const Read read = read_all(head + last + "GET /next", step);
      ASSERT_EQ(read.requests.size(), 1u) << last << step << read.problem;
      EXPECT_EQ(read.requests[0].body, "");
      EXPECT_EQ(read.status, 0);
    }
}

TEST(RequestReader, WhatIsTooLargeIsRefusedBeforeItIsRead) {
  const std::string announced = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n";
  EXPECT_EQ(read_all(announced, 1000).status, 413);
  std::string chunks = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 11; ++i) chunks += "64\r\n" + std::string(100, 'x') + "\r\n";
  EXPECT_EQ(read_all(chunks, 64).status, 413);
  const std::string long_field = "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(20000, 'x') + "\r\n\r\n";
  EXPECT_EQ(read_all(long_field, 1000).status, 431);
  EXPECT_EQ(read_all("GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n", 1000).status, 431);
  EXPECT_EQ(read_all(std::string(20000, 'G'), 1000).status, 431);
}

TEST(RequestReader, WhatIsNotHttpIsRefused) {
  for (const char* bytes :
       {"hello there\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\nHost a\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"})
    EXPECT_EQ(read_all(bytes, 1000).status, 400) << bytes;
  EXPECT_EQ(read_all("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 1000).status, 505);
  EXPECT_EQ(read_all("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 1000).status, 501);
  EXPECT_EQ(read_all("POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n\r\n", 1000).status, 415);
}

TEST(RequestReader, AFailureIsForGood) {
  RequestReader reader(kMaxBody);
  size_t used = 0;
  EXPECT_EQ(reader.read("nonsense\r\n\r\n", used), State::kFailed);
  EXPECT_EQ(reader.read("GET / HTTP/1.1\r\nHost: a\r\n\r\n", used), State::kFailed);
}

TEST(RequestReader, OldClientsAndProxiesAreUnderstood) {
  Read read = read_all("GET /health HTTP/1.0\r\n\r\n", 1000);
  ASSERT_EQ(read.requests.size(), 1u);
  EXPECT_TRUE(read.requests[0].http_1_0);
  EXPECT_FALSE(read.requests[0].keep_alive);
  read = read_all("GET http://here/health?a=b HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n", 1000);
  ASSERT_EQ(read.requests.size(), 1u);
  EXPECT_EQ(read.requests[0].path(), "/health");
  EXPECT_FALSE(read.requests[0].keep_alive);
  read = read_all("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nhi", 1000);
  ASSERT_EQ(read.requests.size(), 1u);
  EXPECT_TRUE(read.requests[0].expects_continue);
}

}  // namespace
}  // namespace whippet::serve
