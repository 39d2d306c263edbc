// From the bytes of a connection to requests: HTTP/1.1 and 1.0, by Boost.Beast's parser, with limits. Knows
// no network, so that it can be fuzzed. One per connection, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "serve/http_message.h"

namespace whippet::serve {

class RequestReader {
 public:
  enum class State {
    kNeedMore,  // all given bytes that could be used are used; more must come
    kHead,      // the head of request() is complete: look at it, then go on. Once a request
    kComplete,  // and the body; reset() before the next
    kFailed,    // status() and problem(); the connection is of no use any more
  };

  explicit RequestReader(uint64_t max_body);
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Reads from the front of `bytes`, which the caller keeps in one piece: what is not `used` must stand at
  // the front again next time, with more behind it.
  State read(std::string_view bytes, size_t& used);

  HttpRequest& request() { return request_; }
  const HttpRequest& request() const { return request_; }
  size_t body_size() const;               // so far
  int status() const { return status_; }  // 400, 413, 431, 501 or 505
  const std::string& problem() const { return problem_; }

  void reset();

 private:
  struct Parser;
  State fail(int status, std::string problem);
  State read_head();

  uint64_t max_body_;
  std::unique_ptr<Parser> parser_;  // none between two requests
  HttpRequest request_;
  bool has_head_ = false;
  int status_ = 0;
  std::string problem_;
};

}  // namespace whippet::serve
