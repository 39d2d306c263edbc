#include "serve/request_reader.h"

#include <fmt/format.h>

#include <boost/beast/http/parser.hpp>
#include <boost/optional.hpp>
#include <utility>

namespace whippet::serve {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

constexpr uint32_t kMaxHead = 16 << 10;
constexpr size_t kMaxTarget = 8 << 10;
constexpr size_t kSmallestChunks = 5;  // "0\r\n\r\n", a chunked body without a byte

// A body that grows with what arrives: nothing is reserved for what is only announced.
struct GrowingBody {
  using value_type = std::string;
  class reader {
   public:
    template <bool kIsRequest, class Fields>
    reader(http::header<kIsRequest, Fields>&, value_type& body) : body_(body) {}
    void init(const boost::optional<uint64_t>&, error_code& failure) { failure = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, error_code& failure) {
      failure = {};
      size_t taken = 0;
      for (auto it = boost::asio::buffer_sequence_begin(buffers);
           it != boost::asio::buffer_sequence_end(buffers); ++it) {
        const boost::asio::const_buffer buffer = *it;
        body_.append(static_cast<const char*>(buffer.data()), buffer.size());
        taken += buffer.size();
      }
      return taken;
    }
    void finish(error_code& failure) { failure = {}; }

   private:
    value_type& body_;
  };
};

std::string text_of(boost::beast::string_view text) { return {text.data(), text.size()}; }

bool same_word(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if ((a[i] >= 'A' && a[i] <= 'Z' ? a[i] + ('a' - 'A') : a[i]) != b[i]) return false;
  return true;
}

// "http://host/path" -> "/path"
std::string origin_form(std::string target) {
  const size_t scheme = target.find("://");
  if (scheme == std::string::npos || target.starts_with('/')) return target;
  const size_t slash = target.find('/', scheme + 3);
  return slash == std::string::npos ? "/" : target.substr(slash);
}

}  // namespace

struct RequestReader::Parser {
  http::request_parser<GrowingBody> beast;
};

RequestReader::RequestReader(uint64_t max_body) : max_body_(max_body) {}
RequestReader::~RequestReader() = default;

void RequestReader::reset() {
  parser_.reset();
  request_ = HttpRequest();
  has_head_ = false;
}

size_t RequestReader::body_size() const { return parser_ ? parser_->beast.get().body().size() : 0; }

RequestReader::State RequestReader::fail(int status, std::string problem) {
  status_ = status;
  problem_ = std::move(problem);
  return State::kFailed;
}

RequestReader::State RequestReader::read(std::string_view bytes, size_t& used) {
  used = 0;
  if (status_ != 0) return State::kFailed;
  if (!parser_) {
    // Empty lines before a request are to be ignored (RFC 9112, 2.2).
    while (used < bytes.size() && (bytes[used] == '\r' || bytes[used] == '\n')) ++used;
    if (used == bytes.size()) return State::kNeedMore;
    parser_ = std::make_unique<Parser>();
    parser_->beast.header_limit(kMaxHead);
    parser_->beast.body_limit(max_body_);
    parser_->beast.eager(false);
  }
  auto& beast = parser_->beast;
  while (!beast.is_done()) {
    if (beast.is_header_done()) {
      if (!has_head_) return read_head();
      beast.eager(true);
    }
    if (used == bytes.size()) return State::kNeedMore;
    // The parser takes for granted that a last chunk comes with more before it; where it is the first, it has
    // to be whole.
    if (beast.is_header_done() && beast.chunked() && beast.get().body().empty() && bytes[used] == '0' &&
        bytes.size() - used < kSmallestChunks)
      return State::kNeedMore;
    error_code failure;
    used += beast.put(boost::asio::buffer(bytes.data() + used, bytes.size() - used), failure);
    if (failure == http::error::need_more) return State::kNeedMore;
    if (failure == http::error::header_limit)
      return fail(431, fmt::format("the head of the request is larger than {} bytes", kMaxHead));
    if (failure == http::error::body_limit)
      return fail(413, fmt::format("the body is larger than {} bytes (--max-request-size)", max_body_));
    if (failure == http::error::bad_version) return fail(505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    if (failure) return fail(400, "malformed HTTP: " + failure.message());
  }
  if (!has_head_) return read_head();
  request_.body = std::move(beast.get().body());
  return State::kComplete;
}

RequestReader::State RequestReader::read_head() {
  const auto& message = parser_->beast.get();
  has_head_ = true;
  const auto field = [&message](http::field name) { return text_of(message[name]); };
  request_.method = text_of(message.method_string());
  request_.target = text_of(message.target());
  request_.http_1_0 = message.version() < 11;
  request_.keep_alive = message.keep_alive();
  if (request_.target.size() > kMaxTarget)
    return fail(431, fmt::format("the URL is larger than {} bytes", kMaxTarget));
  request_.target = origin_form(std::move(request_.target));
  const size_t hosts = message.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && !request_.http_1_0)) return fail(400, "exactly one Host header is needed");
  if (const std::string coding = field(http::field::transfer_encoding);
      !coding.empty() && !same_word(coding, "chunked"))
    return fail(501, "Transfer-Encoding: only chunked is understood");
  if (const std::string coding = field(http::field::content_encoding);
      !coding.empty() && !same_word(coding, "identity"))
    return fail(415, "Content-Encoding: bodies must not be compressed");
  request_.host = field(http::field::host);
  request_.authorization = field(http::field::authorization);
  request_.content_type = field(http::field::content_type);
  request_.origin = field(http::field::origin);
  request_.if_none_match = field(http::field::if_none_match);
  request_.request_id = text_of(message["x-request-id"]);
  request_.requested_method = field(http::field::access_control_request_method);
  request_.requested_headers = field(http::field::access_control_request_headers);
  request_.expects_continue = same_word(field(http::field::expect), "100-continue");
  request_.content_length = parser_->beast.content_length().value_or(0);
  request_.has_body = request_.content_length > 0 || parser_->beast.chunked();
  return State::kHead;
}

}  // namespace whippet::serve
