#include "serve/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/ascii.h"

namespace whippet::serve {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);
constexpr const char* kBlank = "\r\n\r\n";

}  // namespace

RawClient::RawClient(uint16_t port, int receive_buffer) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (receive_buffer > 0)
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

RawClient::~RawClient() { close(); }

void RawClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void RawClient::shut_down() { ::shutdown(socket_, SHUT_WR); }

void RawClient::send(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;  // refused in the middle: the answer says why
    sent += static_cast<size_t>(count);
  }
}

bool RawClient::read_more() {
  char buffer[16384];
  const ssize_t count = ::recv(socket_, buffer, sizeof(buffer), 0);
  EXPECT_FALSE(count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) << "no byte for a minute";
  if (count <= 0) return false;
  input_.append(buffer, static_cast<size_t>(count));
  return true;
}

std::string RawClient::take(size_t count) {
  while (input_.size() < count && read_more()) {
  }
  std::string taken = input_.substr(0, count);
  input_.erase(0, taken.size());
  return taken;
}

std::string RawClient::read_until(const std::string& end) {
  size_t found = std::string::npos;
  while ((found = input_.find(end)) == std::string::npos)
    if (!read_more()) return "";
  return take(found + end.size());
}

std::string RawClient::read_all() {
  while (read_more()) {
  }
  return std::exchange(input_, "");
}

std::string RawClient::read_chunks() {
  std::string body;
  for (;;) {
    const std::string line = read_until("\r\n");
    if (line.empty()) return body + "(cut off)";
    const size_t size = std::stoul(line, nullptr, 16);
    body += take(size);
    EXPECT_EQ(take(2), "\r\n");
    if (size == 0) return body;
  }
}

Answer RawClient::read_answer(bool head) {
  Answer answer;
  const std::string top = read_until(kBlank);
  if (top.empty()) return answer;
  answer.status = std::stoi(top.substr(top.find(' ') + 1));
  for (size_t at = top.find("\r\n") + 2; at + 2 < top.size();) {
    const size_t end = top.find("\r\n", at);
    const std::string line = top.substr(at, end - at);
    answer.headers[lower_ascii(line.substr(0, line.find(':')))] = line.substr(line.find(':') + 2);
    at = end + 2;
  }
  if (head || answer.status == 204 || answer.status == 304 || answer.status == 100) return answer;
  if (const auto length = answer.headers.find("content-length"); length != answer.headers.end()) {
    answer.body = take(std::stoul(length->second));
  } else if (answer.headers.contains("transfer-encoding")) {
    answer.body = read_chunks();
  } else {
    answer.body = read_all();
  }
  return answer;
}

std::string get(const std::string& path, const std::string& headers) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

std::string post(const std::string& path, const std::string& body, const std::string& headers) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body;
}

int32_t StepGate::pass(int64_t) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return open_ || allowed_ > 0; });
  if (!open_) --allowed_;
  return 'a';
}

void StepGate::shut() {
  const std::lock_guard lock(mutex_);
  open_ = false;
}

void StepGate::open() {
  const std::lock_guard lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

void StepGate::allow(int64_t steps) {
  const std::lock_guard lock(mutex_);
  allowed_ += steps;
  changed_.notify_all();
}

ServerTest::ServerTest() {
  write_tiny_model(folder);
  config.port = 0;
  config.handle_signals = false;
  fake = {.model = folder.path(), .max_model_len = 1024, .max_num_seqs = 8, .on_step = {}};
  fake.on_step = [this](int64_t step) { return gate.pass(step); };
}

ServerTest::~ServerTest() { finish(); }

void ServerTest::listen() {
  auto started = Server::start(config);
  ASSERT_TRUE(started.ok()) << started.error().message;
  server = std::move(started).value();
}

void ServerTest::open_model() {
  engine.emplace(FakeEngine::make(fake));
  const Status opened = server->open(*engine);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
}

void ServerTest::finish() {
  gate.open();
  if (server) server->stop();
  engine.reset();
  server.reset();
}

Answer ServerTest::ask(const std::string& bytes) {
  RawClient client(server->port());
  client.send(bytes);
  return client.read_answer();
}

bool ServerTest::eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

bool ServerTest::engine_is_empty() {
  const auto stats = nlohmann::json::parse(engine->stats_json());
  return stats["running"] == 0 && stats["waiting"] == 0 && stats["used_blocks"] == 0;
}

}  // namespace whippet::serve
