// One blocking HTTP(S) request at a time over libcurl: redirects are followed here, so that credentials never
// leave the origin they are meant for. Used by the hubs and by download.h. It never retries (retry.h does).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "hub/environment.h"

namespace whippet {

struct HttpRequest {
  std::string url;
  bool head = false;
  std::string secret;  // a whole header line with credentials; sent to the origin of `url` and to no other
  std::string accept = "*/*";
  uint64_t range_from = 0;   // > 0: Range: bytes=N-
  std::string if_range;      // a strong ETag
  bool leave_origin = true;  // false: a redirect to another origin is the answer itself
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string url;                             // the last one asked
  std::string body;                            // empty where a sink took it

  std::string header(const std::string& lower_name) const;
};

// Receives the body of a 200 or 206 piece by piece; an error ends the request and is returned by it.
using BodySink = std::function<Status(const HttpResponse& head, std::string_view piece)>;

// Keeps connections open between requests. One thread at a time.
class HttpClient {
 public:
  explicit HttpClient(const HubConfig& config);
  HttpClient(HttpClient&&) noexcept;
  ~HttpClient();

  // Any status but a followed redirect is a value. kUnavailable: connection, timeout, broken transfer (trying
  // again may help); kUnauthenticated: the server's certificate; kCancelled; kCorrupt: more than 32 MiB
  // without a sink.
  Result<HttpResponse> send(const HttpRequest& request, const BodySink& sink = nullptr);

 private:
  struct Transfer;
  Result<HttpResponse> send_one(const HttpRequest& request, const std::string& url, bool with_secret,
                                const BodySink& sink);
  void set_options(const HttpRequest& request, const std::string& url, void* headers, Transfer& transfer);

  const HubConfig& config_;
  std::unique_ptr<void, void (*)(void*)> curl_;
};

}  // namespace whippet
