// What the tests of the server share: a server over an engine without weights, whose steps the test holds and
// lets go, and a client that says exactly what a test wants it to.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "api/fake_engine.h"
#include "api/tiny_model.h"
#include "serve/server.h"
#include "serve/server_config.h"

namespace whippet::serve {

struct Answer {
  int status = 0;                              // 0: the connection ended instead
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // without its chunks
};

// One connection to a port of this machine. Blocking; a read that takes a minute is a failure.
class RawClient {
 public:
  explicit RawClient(uint16_t port, int receive_buffer = 0);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(const std::string& bytes);
  void shut_down();  // our side only
  void close();

  // The next whole answer. `head`: it has no body.
  Answer read_answer(bool head = false);
  // The next bytes up to and with `end`; "" where the connection ends before.
  std::string read_until(const std::string& end);
  std::string read_all();
  bool ended() { return read_all().empty(); }

 private:
  bool read_more();
  std::string read_chunks();
  std::string take(size_t count);

  int socket_;
  std::string input_;
};

std::string get(const std::string& path, const std::string& headers = "");
std::string post(const std::string& path, const std::string& body, const std::string& headers = "");

// Stands between the engine's steps. Open at first.
class StepGate {
 public:
  int32_t pass(int64_t step);  // the engine thread
  void shut();
  void open();
  void allow(int64_t steps);  // through the gate that is shut

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int64_t allowed_ = 0;
};

class ServerTest : public testing::Test {
 protected:
  ServerTest();
  ~ServerTest() override;

  void listen();      // the server alone: the model loads
  void open_model();  // and its engine
  void start() {
    listen();
    open_model();
  }
  void finish();  // what the destructor does

  RawClient connect() { return RawClient(server->port()); }
  // One request on a connection of its own.
  Answer ask(const std::string& bytes);
  // Until the condition holds; false after a minute.
  static bool eventually(const std::function<bool()>& condition);
  // Nothing runs, waits or holds a block.
  bool engine_is_empty();

  TestFolder folder;
  StepGate gate;
  ServerConfig config;
  FakeEngineOptions fake;
  std::unique_ptr<Server> server;
  std::optional<Engine> engine;
};

}  // namespace whippet::serve
