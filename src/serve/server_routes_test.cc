// What each path answers, and what is refused and how.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "serve/testing.h"

namespace whippet::serve {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kChat = R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":4})";
constexpr const char* kStream =
    R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":4,"stream":true})";

std::string error_code(const Answer& answer) {
  const json body = json::parse(answer.body, nullptr, false);
  if (!body.is_object() || !body.contains("error")) return "no error body: " + answer.body;
  return body["error"]["code"].is_string() ? body["error"]["code"].get<std::string>() : "";
}

using Routes = ServerTest;

TEST_F(Routes, AreThereOnceTheModelIs) {
  listen();
  EXPECT_EQ(ask(get("/health")).status, 503);
  EXPECT_THAT(ask(get("/health")).body, HasSubstr("loading"));
  EXPECT_EQ(ask(get("/livez")).status, 200);
  EXPECT_EQ(ask(get("/metrics")).status, 200);
  const Answer early = ask(post("/v1/chat/completions", kChat));
  EXPECT_EQ(early.status, 503);
  EXPECT_EQ(error_code(early), "loading");
  EXPECT_TRUE(early.headers.contains("retry-after"));
  open_model();
  EXPECT_EQ(ask(get("/health")).status, 200);
  for (const char* path :
       {"/livez", "/version", "/metrics", "/stats", "/load", "/v1/models", "/v1/models/fake", "/"})
    EXPECT_EQ(ask(get(path)).status, 200) << path;
  EXPECT_EQ(ask(get("/v1/models/other")).status, 404);
  EXPECT_EQ(ask(post("/tokenize", R"({"prompt":"Hi"})")).status, 200);
  EXPECT_EQ(ask(post("/detokenize", R"({"tokens":[72,105]})")).status, 200);
}

TEST_F(Routes, ReportsAreOfTheirFormat) {
  start();
  ask(post("/v1/chat/completions", kChat));
  const json stats = json::parse(ask(get("/stats")).body);
  EXPECT_EQ(stats["generation_tokens"], 4);
  EXPECT_GT(stats["memory"]["resident_bytes"], 0);
  EXPECT_EQ(json::parse(ask(get("/load")).body)["server_load"], 0);
  EXPECT_TRUE(json::parse(ask(get("/version")).body)["version"].is_string());
  const Answer metrics = ask(get("/metrics"));
  EXPECT_THAT(metrics.headers.at("content-type"), HasSubstr("text/plain; version=0.0.4"));
  EXPECT_THAT(metrics.body, HasSubstr("vllm:generation_tokens_total"));
  EXPECT_THAT(metrics.body, HasSubstr("whippet:http_responses_total{status=\"200\"}"));
}

TEST_F(Routes, AChatAnswersWhole) {
  start();
  const Answer answer = ask(post("/v1/chat/completions", kChat, "X-Request-Id: my-id-1\r\n"));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json body = json::parse(answer.body);
  EXPECT_EQ(body["choices"][0]["message"]["content"], "aaaa");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(body["id"], "chatcmpl-my-id-1");
  EXPECT_EQ(answer.headers.at("x-request-id"), "my-id-1");
  EXPECT_EQ(answer.headers.at("content-type"), "application/json");
}

TEST_F(Routes, AChatStreams) {
  start();
  const Answer answer = ask(post("/v1/chat/completions", kStream));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.headers.at("content-type"), HasSubstr("text/event-stream"));
  EXPECT_EQ(answer.headers.at("x-accel-buffering"), "no");
  EXPECT_THAT(answer.body, testing::EndsWith("data: [DONE]\n\n"));
  std::string text;
  for (size_t at = 0; (at = answer.body.find("data: {", at)) != std::string::npos;) {
    const size_t end = answer.body.find("\n\n", at);
    const json chunk = json::parse(answer.body.substr(at + 6, end - at - 6));
    if (!chunk["choices"].empty()) text += chunk["choices"][0]["delta"].value("content", "");
    at = end;
  }
  EXPECT_EQ(text, "aaaa");
}

TEST_F(Routes, CompletionsTakeManyPrompts) {
  start();
  const Answer answer = ask(post("/v1/completions", R"({"prompt":["one","two"],"max_tokens":3})"));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(json::parse(answer.body)["choices"].size(), 2u);
  EXPECT_TRUE(eventually([&] { return engine_is_empty(); }));
}

TEST_F(Routes, AnOldClientGetsAStreamThatEndsWithTheConnection) {
  start();
  const std::string body = kStream;
  const Answer answer =
      ask("POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: " +
          std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.headers.contains("transfer-encoding"));
  EXPECT_THAT(answer.body, testing::EndsWith("data: [DONE]\n\n"));
}

TEST_F(Routes, WhatIsNotThereSaysWhatIs) {
  start();
  for (const char* path : {"/v1/responses", "/v1/messages", "/v1/embeddings", "/api/chat", "/nothing"}) {
    const Answer answer = ask(post(path, "{}"));
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(error_code(answer), "not_found");
    EXPECT_THAT(answer.body, HasSubstr("/v1/chat/completions"));
  }
  EXPECT_EQ(ask(get("/../etc/passwd")).status, 404);
  EXPECT_EQ(ask(get("/%2e%2e/etc/passwd")).status, 404);
}

TEST_F(Routes, TheWrongMethodTypeSizeAndFormAreRefused) {
  config.max_request_size = 2000;
  start();
  const Answer method = ask(get("/v1/chat/completions"));
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.headers.at("allow"), "POST");
  EXPECT_EQ(ask(post("/health", "{}")).headers.at("allow"), "GET, HEAD");
  EXPECT_EQ(ask("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                "text/plain\r\nContent-Length: 2\r\n\r\n{}")
                .status,
            415);
  EXPECT_EQ(ask(post("/v1/completions", std::string(3000, ' '))).status, 413);
  EXPECT_EQ(ask(get("/health", "X: " + std::string(20000, 'x') + "\r\n")).status, 431);
  EXPECT_EQ(ask("{\"not\": \"http\"}\r\n\r\n").status, 400);
  const Answer json_answer = ask(post("/v1/chat/completions", "{not json"));
  EXPECT_EQ(json_answer.status, 400);
  EXPECT_THAT(json_answer.body, HasSubstr("\"error\""));
  const Answer too_long = ask(post("/v1/completions", R"({"prompt":")" + std::string(1500, 'x') + R"("})"));
  EXPECT_EQ(too_long.status, 400);
  EXPECT_EQ(error_code(too_long), "context_length_exceeded");
}

TEST_F(Routes, UnknownFieldsAreNamedInAHeaderOrRefused) {
  start();
  const char* body =
      R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":2,"wibble":1,"wob\r\nble":2})";
  const Answer answer = ask(post("/v1/chat/completions", body));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.headers.at("x-whippet-ignored-fields"), HasSubstr("wibble"));
  EXPECT_THAT(answer.headers.at("x-whippet-ignored-fields"), HasSubstr("wob??ble"));
  finish();
  config.strict_fields = true;
  start();
  EXPECT_EQ(ask(post("/v1/chat/completions", body)).status, 400);
}

TEST_F(Routes, KeysOpenEverythingButProbesAndThePage) {
  config.api_keys = {"secret"};
  start();
  for (const char* path : {"/health", "/livez", "/"}) EXPECT_EQ(ask(get(path)).status, 200) << path;
  for (const char* path : {"/v1/models", "/metrics", "/stats", "/version", "/load", "/nothing"}) {
    EXPECT_EQ(ask(get(path)).status, 401) << path;
    EXPECT_EQ(ask(get(path, "Authorization: Bearer wrong\r\n")).status, 401) << path;
  }
  EXPECT_EQ(ask(get("/v1/models", "Authorization: Bearer secret\r\n")).status, 200);
  const Answer refused = ask(post("/v1/chat/completions", kChat));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(error_code(refused), "invalid_api_key");
  EXPECT_EQ(refused.headers.at("www-authenticate"), "Bearer");
  finish();
  config.metrics_auth = false;
  start();
  EXPECT_EQ(ask(get("/metrics")).status, 200);
}

TEST_F(Routes, AForeignHostIsRefusedAndAForeignOriginGetsNothing) {
  start();
  EXPECT_EQ(ask("GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 403);
  EXPECT_FALSE(
      ask(get("/v1/models", "Origin: http://a.example\r\n")).headers.contains("access-control-allow-origin"));
  const std::string preflight =
      "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a.example\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n";
  EXPECT_EQ(ask(preflight).status, 405);
  finish();
  config.allowed_origins = {"http://a.example"};
  config.api_keys = {"secret"};
  start();
  const Answer allowed = ask(preflight);
  EXPECT_EQ(allowed.status, 204);
  EXPECT_EQ(allowed.headers.at("access-control-allow-origin"), "http://a.example");
  EXPECT_THAT(allowed.headers.at("access-control-allow-headers"), HasSubstr("authorization"));
  const Answer answer =
      ask(get("/v1/models", "Origin: http://a.example\r\nAuthorization: Bearer secret\r\n"));
  EXPECT_EQ(answer.headers.at("access-control-allow-origin"), "http://a.example");
  EXPECT_FALSE(
      ask(get("/health", "Origin: http://b.example\r\n")).headers.contains("access-control-allow-origin"));
}

TEST_F(Routes, ThePageIsGuardedByItsHeaders) {
  start();
  const Answer page = ask(get("/"));
  EXPECT_THAT(page.headers.at("content-type"), HasSubstr("text/html"));
  EXPECT_THAT(page.headers.at("content-security-policy"), HasSubstr("default-src 'none'"));
  EXPECT_EQ(page.headers.at("x-content-type-options"), "nosniff");
  EXPECT_EQ(ask(get("/", "If-None-Match: " + page.headers.at("etag") + "\r\n")).status, 304);
}

}  // namespace
}  // namespace whippet::serve
