// What becomes of requests when clients leave, do not read, send half of something, or the server stops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "serve/testing.h"

namespace whippet::serve {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::string chat(int max_tokens, bool stream, const std::string& prompt = "Hi") {
  return post("/v1/chat/completions", json{{"messages", {{{"role", "user"}, {"content", prompt}}}},
                                           {"max_tokens", max_tokens},
                                           {"stream", stream}}
                                          .dump());
}

class ServerLife : public ServerTest {
 protected:
  int32_t running() { return engine->counts().running; }
  int32_t waiting() { return engine->counts().waiting; }
  // The number of one of the server's own counters.
  int64_t counter(const std::string& name) {
    const std::string metrics = ask(get("/metrics")).body;
    const size_t at = metrics.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stoll(metrics.substr(at + name.size() + 2));
  }
  bool becomes_empty() {
    return eventually([this] { return engine_is_empty(); }) &&
           eventually([this] { return counter("whippet:http_requests_busy") == 1; });  // that asks
  }
};

TEST_F(ServerLife, AClientThatLeavesWhileItsAnswerIsMadeIsCancelled) {
  start();
  for (const bool stream : {true, false}) {
    gate.shut();
    RawClient client = connect();
    client.send(chat(900, stream));
    gate.allow(3);
    ASSERT_TRUE(eventually([this] { return running() == 1; }));
    if (stream) {
      EXPECT_NE(client.read_until("\"a\""), "");
    }
    const int64_t before = counter("whippet:http_hang_ups_total");
    client.close();
    ASSERT_TRUE(eventually([&] { return counter("whippet:http_hang_ups_total") > before; }));
    gate.allow(1);  // the step in which it ends
    ASSERT_TRUE(eventually([this] { return engine_is_empty(); }));
    gate.open();
  }
}

TEST_F(ServerLife, AClientThatLeavesTheQueueIsForgotten) {
  fake.max_num_seqs = 1;
  start();
  gate.shut();
  RawClient first = connect(), second = connect();
  first.send(chat(900, true));
  gate.allow(2);
  ASSERT_TRUE(eventually([this] { return running() == 1; }));
  second.send(chat(900, true));
  gate.allow(1);
  ASSERT_TRUE(eventually([&] {
    gate.allow(1);
    return waiting() == 1;
  }));
  second.close();
  ASSERT_TRUE(eventually([&] {
    gate.allow(1);
    return waiting() == 0;
  }));
  EXPECT_EQ(running(), 1);
  first.close();
  gate.open();
  EXPECT_TRUE(becomes_empty());
}

TEST_F(ServerLife, AClientThatLeavesWhileItsPromptIsReadIsCancelled) {
  fake.max_num_batched_tokens = 16;
  start();
  gate.shut();
  RawClient client = connect();
  client.send(chat(500, true, std::string(400, 'x')));
  gate.allow(2);  // of 26 that the prompt needs
  ASSERT_TRUE(eventually([this] { return running() == 1; }));
  client.close();
  ASSERT_TRUE(eventually([this] { return counter("whippet:http_hang_ups_total") == 1; }));
  gate.allow(2);
  EXPECT_TRUE(becomes_empty());
  EXPECT_EQ(engine->counts().generation_tokens, 0u);
}

TEST_F(ServerLife, HundredsThatLeaveInTheMiddleLeaveNothingBehind) {
  start();
  for (int round = 0; round < 8; ++round) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 50; ++i) {
      clients.push_back(std::make_unique<RawClient>(server->port()));
      clients.back()->send(chat(300, i % 2 == 0, std::string(static_cast<size_t>(i), 'x')));
    }
    for (size_t i = 0; i < clients.size(); i += 4) clients[i]->read_until("data: ");
  }
  EXPECT_TRUE(becomes_empty());
  EXPECT_EQ(ask(chat(3, false)).status, 200);
}

TEST_F(ServerLife, AReaderThatDoesNotReadIsCutOffAndBlocksNobody) {
  config.max_stream_backlog = 64 << 10;
  fake.max_model_len = 200'000;
  fake.max_num_seqs = 2;
  start();
  RawClient slow(server->port(), 4096);
  slow.send(chat(190'000, true));
  EXPECT_EQ(ask(chat(3, false)).status, 200);
  ASSERT_TRUE(eventually([this] { return counter("whippet:http_slow_readers_total") == 1; }));
  EXPECT_TRUE(becomes_empty());
  EXPECT_THAT(slow.read_all(), Not(HasSubstr("[DONE]")));
}

TEST_F(ServerLife, AReaderIsNotCutOffForTheSizeOfOneEvent) {
  config.max_stream_backlog = 1;
  fake.max_model_len = 1'400'000;
  start();
  const std::string prompt(1'300'000, '\x01');  // six bytes each in the event: more than a socket keeps
  RawClient client(server->port(), 4096);
  client.send(post("/v1/completions",
                   json{{"prompt", prompt}, {"echo", true}, {"max_tokens", 2}, {"stream", true}}.dump()));
  const Answer answer = client.read_answer();
  EXPECT_GT(answer.body.size(), 6 * prompt.size());
  EXPECT_THAT(answer.body, EndsWith("data: [DONE]\n\n"));
}

TEST_F(ServerLife, SilenceIsFilledWithComments) {
  config.comment_interval_s = 0.05;
  start();
  gate.shut();
  RawClient client = connect();
  client.send(chat(2, true));
  EXPECT_NE(client.read_until(": still here\n\n"), "");
  EXPECT_NE(client.read_until(": still here\n\n"), "");
  gate.open();
  EXPECT_NE(client.read_until("data: [DONE]\n\n"), "");
}

TEST_F(ServerLife, RequestsOfOneConnectionAreAnsweredInTheirOrder) {
  start();
  RawClient client = connect();
  client.send(get("/health") + chat(2, false) + chat(2, true) + get("/version") +
              "HEAD /health HTTP/1.1\r\n" + "Host: localhost\r\n\r\n" + get("/load"));
  EXPECT_THAT(client.read_answer().body, HasSubstr("ok"));
  EXPECT_THAT(client.read_answer().body, HasSubstr("\"aa\""));
  EXPECT_THAT(client.read_answer().body, EndsWith("data: [DONE]\n\n"));
  EXPECT_THAT(client.read_answer().body, HasSubstr("version"));
  const Answer head = client.read_answer(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_NE(head.headers.at("content-length"), "0");
  EXPECT_THAT(client.read_answer().body, HasSubstr("server_load"));
}

TEST_F(ServerLife, ARequestMayComeByteByByteAndItsBodyAfterALook) {
  start();
  RawClient client = connect();
  for (const char byte : chat(2, false)) client.send(std::string(1, byte));
  EXPECT_EQ(client.read_answer().status, 200);
  const std::string body = R"({"prompt":"Hi","max_tokens":2})";
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: "
      "100-continue\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 100);
  client.send(body);
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST_F(ServerLife, HalfARequestEndsWithItsTimeAndHoldsNobodyUp) {
  config.header_timeout_s = config.body_timeout_s = 0.3;
  config.idle_timeout_s = 0.6;
  start();
  RawClient head = connect(), body = connect(), silent = connect();
  head.send("GET /health HTTP/1.1\r\nHo");
  body.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 100\r\n\r\n{");
  EXPECT_EQ(ask(get("/health")).status, 200);
  EXPECT_EQ(head.read_answer().status, 408);
  EXPECT_EQ(body.read_answer().status, 408);
  EXPECT_TRUE(head.ended() && body.ended() && silent.ended());
}

TEST_F(ServerLife, ARefusalIsSeenThoughTheBodyIsStillBeingSent) {
  config.max_request_size = 1000;
  start();
  RawClient client = connect();
  client.send(post("/v1/completions", std::string(8 << 20, 'x')));
  EXPECT_EQ(client.read_answer().status, 413);
}

TEST_F(ServerLife, TooManyConnectionsAreToldSo) {
  config.max_connections = 2;
  start();
  RawClient one = connect(), two = connect();
  one.send(get("/health"));
  two.send(get("/health"));
  EXPECT_EQ(one.read_answer().status + two.read_answer().status, 400);
  RawClient three = connect();
  EXPECT_EQ(three.read_answer().status, 503);
  one.close();
  ASSERT_TRUE(eventually([this] { return ask(get("/health")).status == 200; }));
}

TEST_F(ServerLife, MoreThanMayWaitAreToldToComeLater) {
  fake.max_num_seqs = 1;
  config.max_queued_requests = 1;
  start();
  gate.shut();
  RawClient one = connect(), two = connect();
  one.send(chat(5, false));
  two.send(chat(5, false));
  ASSERT_TRUE(eventually([this] { return json::parse(ask(get("/load")).body)["server_load"] == 2; }));
  const Answer refused = ask(chat(5, false));
  EXPECT_EQ(refused.status, 429);
  EXPECT_GE(std::stoi(refused.headers.at("retry-after")), 1);
  gate.open();
  EXPECT_EQ(one.read_answer().status, 200);
  EXPECT_EQ(two.read_answer().status, 200);
  EXPECT_TRUE(eventually([this] { return ask(chat(5, false)).status == 200; }));
}

TEST_F(ServerLife, WhatTakesTooLongIs504OrAnErrorInTheStream) {
  config.request_timeout_s = 0.2;
  start();
  gate.shut();
  RawClient whole = connect(), stream = connect();
  whole.send(chat(500, false));
  stream.send(chat(500, true));
  ASSERT_TRUE(eventually([&] {  // slow steps, until both are over
    gate.allow(1);
    return counter("whippet:http_requests_busy") == 1;
  }));
  EXPECT_EQ(whole.read_answer().status, 504);
  const Answer cut = stream.read_answer();
  EXPECT_EQ(cut.status, 200);
  EXPECT_THAT(cut.body, HasSubstr("\"error\""));
  EXPECT_THAT(cut.body, Not(HasSubstr("\"length\"")));
  gate.open();
  EXPECT_TRUE(becomes_empty());
}

TEST_F(ServerLife, WhatRunsMayEndWhenTheServerStops) {
  start();
  gate.shut();
  RawClient stream = connect(), idle = connect(), late = connect();
  stream.send(chat(5, true));
  EXPECT_NE(stream.read_until("\r\n\r\n"), "");
  server->drain();
  const Answer health = ask(get("/health"));
  EXPECT_EQ(health.status, 503);
  EXPECT_THAT(health.body, HasSubstr("draining"));
  const Answer refused = ask(chat(5, false));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("connection"), "close");
  gate.open();
  EXPECT_TRUE(server->wait());
  EXPECT_THAT(stream.read_all(), HasSubstr("data: [DONE]\n\n"));
  EXPECT_TRUE(idle.ended());
}

TEST_F(ServerLife, WhatDoesNotEndInTimeEndsWithAnError) {
  config.shutdown_timeout_s = 0.2;
  start();
  gate.shut();
  RawClient stream = connect(), whole = connect();
  stream.send(chat(900, true));
  EXPECT_NE(stream.read_until("\r\n\r\n"), "");
  whole.send(chat(900, false));
  ASSERT_TRUE(eventually([this] { return json::parse(ask(get("/load")).body)["server_load"] == 2; }));
  server->drain();
  std::atomic<bool> over = false;
  std::thread steps([&] { eventually([&] { return gate.allow(1), over.load(); }); });
  EXPECT_FALSE(server->wait());
  over = true;
  steps.join();
  const std::string rest = stream.read_all();
  EXPECT_THAT(rest, HasSubstr("shutting down"));
  EXPECT_THAT(rest, HasSubstr("data: [DONE]\n\n"));
  EXPECT_EQ(whole.read_answer().status, 503);
}

TEST_F(ServerLife, AnEngineThatHangsIsNotHealthyAndThenNotAlive) {
  config.stall_timeout_s = 0.3;
  start();
  gate.shut();
  RawClient client = connect();
  client.send(chat(5, false));
  ASSERT_TRUE(eventually([this] { return ask(get("/health")).status == 503; }));
  EXPECT_THAT(ask(get("/health")).body, HasSubstr("stalled"));
  ASSERT_TRUE(eventually([this] { return ask(get("/livez")).status == 503; }));
  gate.open();
  EXPECT_EQ(client.read_answer().status, 200);
  ASSERT_TRUE(eventually([this] { return ask(get("/health")).status == 200; }));
}

TEST_F(ServerLife, SeveralIoThreadsShareTheConnections) {
  config.io_threads = 3;
  start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 24; ++i) {
    clients.push_back(std::make_unique<RawClient>(server->port()));
    clients.back()->send(chat(20, i % 2 == 0));
  }
  for (auto& client : clients) EXPECT_EQ(client->read_answer().status, 200);
  EXPECT_TRUE(becomes_empty());
}

}  // namespace
}  // namespace whippet::serve
