// One request and one answer of HTTP as the routes see them; no network in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace whippet::serve {

struct HttpRequest {
  std::string method;  // "GET"
  std::string target;  // "/v1/models?x=1"
  std::string host, authorization, content_type, origin, request_id, if_none_match;
  std::string requested_method, requested_headers;  // of a CORS preflight
  uint64_t content_length = 0;                      // as announced; 0 for a chunked body
  bool has_body = false;
  bool http_1_0 = false;
  bool keep_alive = true;
  bool expects_continue = false;
  std::string body;

  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
  bool is_head() const { return method == "HEAD"; }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  bool close = false;  // the connection ends behind it
};

const char* reason_phrase(int status);

// Appends the status line and the header, with its empty line. content_length < 0: the length is not known,
// the body comes in chunks (or, for HTTP/1.0, ends with the connection).
struct HeadOptions {
  int64_t content_length = 0;
  bool keep_alive = true;
  bool http_1_0 = false;
};
void append_head(const HttpResponse& response, const HeadOptions& options, std::string& out);

// What stands safely in a header or a log line: other characters become '?', at most `limit` bytes.
std::string printable(std::string_view text, size_t limit);

}  // namespace whippet::serve
