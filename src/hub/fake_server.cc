#include "hub/fake_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>

#include "base/check.h"

namespace whippet {
namespace {

constexpr size_t kMaxHead = 64u << 10;

bool send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

std::string read_head(int connection) {
  std::string head;
  char buffer[4096];
  while (head.find("\r\n\r\n") == std::string::npos && head.size() < kMaxHead) {
    const ssize_t count = ::recv(connection, buffer, sizeof buffer, 0);
    if (count <= 0) return "";
    head.append(buffer, static_cast<size_t>(count));
  }
  return head;
}

std::string decode(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const bool escape = text[i] == '%' && i + 2 < text.size() &&
                        std::from_chars(&text[i + 1], &text[i + 3], value, 16).ptr == &text[i + 3];
    out += escape ? static_cast<char>(value) : text[i];
    if (escape) i += 2;
  }
  return out;
}

FakeRequest parse(const std::string& head) {
  FakeRequest request;
  std::istringstream lines(head);
  lines >> request.method >> request.target;
  request.path = decode(request.target.substr(0, request.target.find('?')));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && line != "\r") {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    request.headers[name] = line.substr(colon + 2, line.size() - colon - 3);
  }
  return request;
}

}  // namespace

std::string FakeRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

FakeServer::FakeServer(Handler handler) : handler_(std::move(handler)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  WH_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  WH_CHECK(::listen(listener_, 64) == 0);
  socklen_t size = sizeof address;
  WH_CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

FakeServer::~FakeServer() {
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  for (std::thread& connection : connections_) connection.join();
}

std::string FakeServer::url(const std::string& host) const {
  return fmt::format("http://{}:{}", host, port_);
}

std::vector<FakeRequest> FakeServer::requests() const {
  const std::lock_guard guard(mutex_);
  return requests_;
}

size_t FakeServer::count(const std::string& text) const {
  const auto all = requests();
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), [&](const FakeRequest& request) {
    return (request.method + " " + request.path).find(text) != std::string::npos;
  }));
}

void FakeServer::accept_loop() {
  while (true) {
    const int connection = ::accept(listener_, nullptr, nullptr);
    if (connection < 0) return;
    connections_.emplace_back([this, connection] { serve(connection); });
  }
}

// One request a connection: what a test counts is then simple.
void FakeServer::serve(int connection) {
  const std::string head = read_head(connection);
  if (!head.empty()) {
    FakeResponse response;
    const FakeRequest request = parse(head);
    {
      const std::lock_guard guard(mutex_);
      requests_.push_back(request);
      response = handler_(request);
    }
    std::string text = fmt::format("HTTP/1.1 {} Status\r\nConnection: close\r\n", response.status);
    for (const auto& [name, value] : response.headers) text += name + ": " + value + "\r\n";
    const bool has_length = std::any_of(response.headers.begin(), response.headers.end(),
                                        [](const auto& header) { return header.first == "Content-Length"; });
    if (!response.no_length && !has_length)
      text += fmt::format("Content-Length: {}\r\n", response.body.size());
    text += "\r\n";
    if (request.method != "HEAD") text += response.body.substr(0, response.cut_after);
    if (!response.drop) send_all(connection, text);
  }
  ::shutdown(connection, SHUT_WR);
  char rest[256];
  while (::recv(connection, rest, sizeof rest, 0) > 0) {
  }
  ::close(connection);
}

FakeResponse serve_file(const FakeRequest& request, const std::string& content, bool ranges) {
  FakeResponse response;
  const std::string range = request.header("range");
  size_t from = 0;
  if (!ranges || !range.starts_with("bytes=")) {
    response.body = content;
    return response;
  }
  std::from_chars(range.data() + 6, range.data() + range.size(), from);
  if (from >= content.size()) {
    response.status = 416;
    response.headers = {{"Content-Range", fmt::format("bytes */{}", content.size())}};
    return response;
  }
  response.status = 206;
  response.body = content.substr(from);
  response.headers = {
      {"Content-Range", fmt::format("bytes {}-{}/{}", from, content.size() - 1, content.size())}};
  return response;
}

}  // namespace whippet
