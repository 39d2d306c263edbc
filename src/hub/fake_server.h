// For tests: an HTTP server inside the test program, on 127.0.0.1 and a port of its own, that answers what a
// function says and can break off where a test wants it to.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace whippet {

struct FakeRequest {
  std::string method;
  std::string target;                          // with the query
  std::string path;                            // without it, percent-decoded
  std::map<std::string, std::string> headers;  // names in lower case

  std::string header(const std::string& name) const;
};

struct FakeResponse {
  int status = 200;
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  size_t cut_after = std::numeric_limits<size_t>::max();  // bytes of the body, then the connection ends
  bool drop = false;                                      // the connection ends before any answer
  bool no_length = false;                                 // the body ends with the connection
};

class FakeServer {
 public:
  using Handler = std::function<FakeResponse(const FakeRequest&)>;

  explicit FakeServer(Handler handler);
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  // "http://127.0.0.1:PORT"; "localhost" is the same server under another origin.
  std::string url(const std::string& host = "127.0.0.1") const;
  std::vector<FakeRequest> requests() const;
  // Requests whose "METHOD path" holds `text`.
  size_t count(const std::string& text) const;

 private:
  void accept_loop();
  void serve(int connection);

  Handler handler_;
  int listener_ = -1;
  uint16_t port_ = 0;
  mutable std::mutex mutex_;  // guards requests_ and the handler's state
  std::vector<FakeRequest> requests_;
  std::vector<std::thread> connections_;  // of the accepting thread until it has ended
  std::thread acceptor_;
};

// `content` as a file server gives it: whole, or from the Range asked for when `ranges` is true.
FakeResponse serve_file(const FakeRequest& request, const std::string& content, bool ranges = true);

}  // namespace whippet
