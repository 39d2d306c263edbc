#include "hub/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>

#include "hub/url.h"

namespace whippet {
namespace {

constexpr int kMaxRedirects = 10;
constexpr size_t kMaxBody = 32u << 20;
constexpr size_t kMaxErrorBody = 64u << 10;
constexpr size_t kMaxHeaders = 256;
constexpr long kConnectSeconds = 20;
constexpr long kLowSpeedBytes = 1024;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool is_certificate_fault(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_SSL_ISSUER_ERROR || code == CURLE_SSL_CERTPROBLEM;
}

void* new_handle() {
  // libcurl's own state is set up once for the process, by whichever thread comes first.
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  WH_CHECK(initialised == CURLE_OK, "curl_global_init: {}", static_cast<int>(initialised));
  CURL* handle = curl_easy_init();
  WH_CHECK(handle != nullptr, "curl_easy_init failed");
  return handle;
}

class HeaderList {
 public:
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() { curl_slist_free_all(list_); }
  void add(const std::string& line) {
    // A line break in a token or a header value would smuggle in a header of its own.
    if (line.find_first_of("\r\n") == std::string::npos) list_ = curl_slist_append(list_, line.c_str());
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

}  // namespace

// What the callbacks of libcurl share during one request.
struct HttpClient::Transfer {
  HttpResponse response;
  const BodySink* sink = nullptr;
  const std::atomic<bool>* cancelled = nullptr;
  Status failed;

  static size_t on_header(char* data, size_t size, size_t count, void* self) {
    auto& response = static_cast<Transfer*>(self)->response;
    const std::string_view line = trimmed({data, size * count});
    if (line.starts_with("HTTP/")) {  // a new head: an interim answer or a proxy's came before
      response.headers.clear();
      const size_t space = line.find(' ');
      response.status = 0;
      for (size_t i = space + 1; space != std::string_view::npos && i < line.size() && i < space + 4; ++i) {
        if (line[i] >= '0' && line[i] <= '9') response.status = response.status * 10 + (line[i] - '0');
      }
      return size * count;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || response.headers.size() >= kMaxHeaders) return size * count;
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    response.headers[name] = trimmed(line.substr(colon + 1));
    return size * count;
  }

  static size_t on_body(char* data, size_t size, size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    const std::string_view piece(data, size * count);
    HttpResponse& response = transfer.response;
    const bool good = response.status == 200 || response.status == 206;
    if (good && *transfer.sink) {
      transfer.failed = (*transfer.sink)(response, piece);
      return transfer.failed.ok() ? piece.size() : CURL_WRITEFUNC_ERROR;
    }
    if (good && response.body.size() + piece.size() > kMaxBody) {
      transfer.failed =
          make_error(Code::kCorrupt, "{} answers with more than {} MiB where a short text is due",
                     display_url(response.url), kMaxBody >> 20);
      return CURL_WRITEFUNC_ERROR;
    }
    if (good || response.body.size() < kMaxErrorBody) response.body += piece;
    return piece.size();
  }

  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    const auto* cancelled = static_cast<Transfer*>(self)->cancelled;
    return cancelled != nullptr && cancelled->load() ? 1 : 0;
  }
};

std::string HttpResponse::header(const std::string& lower_name) const {
  const auto found = headers.find(lower_name);
  return found == headers.end() ? "" : found->second;
}

HttpClient::HttpClient(const HubConfig& config)
    : config_(config), curl_(new_handle(), [](void* handle) { curl_easy_cleanup(handle); }) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpResponse> HttpClient::send(const HttpRequest& request, const BodySink& sink) {
  WH_ASSIGN(const Url origin, parse_url(request.url));
  Url url = origin;
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    WH_ASSIGN(HttpResponse response, send_one(request, url.text, may_share_secret(origin, url), sink));
    const std::string location = response.header("location");
    if (!is_redirect(response.status) || location.empty()) return response;
    WH_ASSIGN(const Url next, join_url(url.text, location));
    if (url.scheme == "https" && next.scheme == "http") {
      return make_error(Code::kUnsupported, "{} redirects to {}, which is not encrypted: refused",
                        display_url(url.text), display_url(next.text));
    }
    if (!request.leave_origin && !may_share_secret(origin, next)) return response;
    url = next;
  }
  return make_error(Code::kUnsupported, "{} redirects more than {} times", display_url(request.url),
                    kMaxRedirects);
}

Result<HttpResponse> HttpClient::send_one(const HttpRequest& request, const std::string& url,
                                          bool with_secret, const BodySink& sink) {
  Transfer transfer;
  transfer.response.url = url;
  transfer.sink = &sink;
  transfer.cancelled = config_.cancelled;
  HeaderList headers;
  headers.add("Accept: " + request.accept);
  headers.add("Accept-Encoding: identity");  // sizes and hashes are those of the file itself
  if (with_secret && !request.secret.empty()) headers.add(request.secret);
  if (request.range_from > 0) headers.add(fmt::format("Range: bytes={}-", request.range_from));
  if (request.range_from > 0 && !request.if_range.empty()) headers.add("If-Range: " + request.if_range);
  set_options(request, url, headers.get(), transfer);
  char reason[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl_.get(), CURLOPT_ERRORBUFFER, reason);
  const CURLcode code = curl_easy_perform(curl_.get());
  curl_easy_setopt(curl_.get(), CURLOPT_ERRORBUFFER, nullptr);
  if (!transfer.failed.ok()) return transfer.failed.error();
  if (code == CURLE_OK) return std::move(transfer.response);
  if (code == CURLE_ABORTED_BY_CALLBACK) return make_error(Code::kCancelled, "stopped on request");
  const std::string why = *reason != '\0' ? reason : curl_easy_strerror(code);
  if (is_certificate_fault(code)) {
    return make_error(
        Code::kUnauthenticated,
        "the certificate of {} cannot be verified ({}); with a CA of your own set CURL_CA_BUNDLE "
        "to its file",
        display_url(url), why);
  }
  const bool unreachable = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
                           code == CURLE_COULDNT_CONNECT;
  return make_error(Code::kUnavailable, "{}: {}{}", display_url(url), why,
                    unreachable ? " (is there a network, or a proxy to set in https_proxy?)" : "");
}

void HttpClient::set_options(const HttpRequest& request, const std::string& url, void* headers,
                             Transfer& transfer) {
  CURL* curl = curl_.get();
  curl_easy_reset(curl);  // options only: connections stay
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOBODY, request.head ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, static_cast<curl_slist*>(headers));
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "whippet");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kLowSpeedBytes);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(config_.low_speed_time.count()));
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Transfer::on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  if (!config_.no_proxy.empty()) curl_easy_setopt(curl, CURLOPT_NOPROXY, config_.no_proxy.c_str());
  if (!config_.ca_bundle.empty()) {
    std::error_code ignored;
    const bool folder = std::filesystem::is_directory(config_.ca_bundle, ignored);
    curl_easy_setopt(curl, folder ? CURLOPT_CAPATH : CURLOPT_CAINFO, config_.ca_bundle.c_str());
  }
}

}  // namespace whippet
