#include "cli/bench_load.h"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/check.h"

namespace whippet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLongestPollMs = 100;
constexpr long kConnections = 4096;         // that are kept open between requests
constexpr size_t kLongestText = 16u << 20;  // bytes of a GET
constexpr size_t kLongestDetail = 300;      // bytes

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Multi = std::unique_ptr<CURLM, FreeMulti>;
using Easy = std::unique_ptr<CURL, FreeEasy>;
using Headers = std::unique_ptr<curl_slist, FreeList>;

Headers make_headers(const LoadTarget& target) {
  Headers headers(curl_slist_append(nullptr, "Content-Type: application/json"));
  curl_slist_append(headers.get(), "Expect:");  // no asking before a large body
  if (!target.api_key.empty())
    curl_slist_append(headers.get(), ("Authorization: Bearer " + target.api_key).c_str());
  return headers;
}

bool is_this_machine(const std::string& url) {
  for (const char* host : {"://127.", "://localhost", "://[::1]"})
    if (url.find(host) != std::string::npos) return true;
  return false;
}

void set_target(CURL* easy, const LoadTarget& target, curl_slist* headers) {
  curl_easy_setopt(easy, CURLOPT_URL, target.url.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(target.timeout_s * 1e3));
  if (is_this_machine(target.url)) curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

std::string kind_of(CURLcode code) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return "timeout";
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return "no connection";
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return "TLS";
    default:
      return "answer cut off";
  }
}

// One request on its way; its handle and connection serve the next one.
struct Flight {
  Easy easy;
  size_t request = 0;
  Clock::time_point sent;
  BenchAnswerReader reader;

  int status() const {
    long code = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &code);
    return static_cast<int>(code);
  }
  static size_t on_body(char* data, size_t size, size_t number, void* self) {
    auto& flight = *static_cast<Flight*>(self);
    flight.reader.take(flight.status(), {data, size * number}, seconds_since(flight.sent));
    return size * number;
  }
};

class Load {
 public:
  Load(const LoadTarget& target, const LoadPlan& plan)
      : target_(target), plan_(plan), headers_(make_headers(target)), multi_(curl_multi_init()) {
    WH_CHECK(multi_ != nullptr && plan.bodies.size() == plan.starts.size());
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, kConnections);
    result_.answers.resize(plan.bodies.size());
  }
  ~Load() {
    for (const auto& flight : flights_) curl_multi_remove_handle(multi_.get(), flight->easy.get());
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  LoadResult run() {
    begin_ = Clock::now();
    while (ended_ < plan_.bodies.size()) {
      start_due();
      int running = 0;
      curl_multi_perform(multi_.get(), &running);
      if (!take_ended()) curl_multi_poll(multi_.get(), nullptr, 0, milliseconds_to_wait(), nullptr);
    }
    result_.seconds -= plan_.starts.empty() ? 0 : plan_.starts.front();
    return std::move(result_);
  }

 private:
  bool full() const {
    return plan_.max_concurrency > 0 && next_ - ended_ >= static_cast<size_t>(plan_.max_concurrency);
  }

  void start_due() {
    const double now = seconds_since(begin_);
    while (next_ < plan_.bodies.size() && !full() && plan_.starts[next_] <= now) start(next_++);
  }

  int milliseconds_to_wait() const {
    if (next_ == plan_.bodies.size() || full()) return kLongestPollMs;
    const double wait = (plan_.starts[next_] - seconds_since(begin_)) * 1e3;
    return static_cast<int>(std::clamp(wait, 0.0, double{kLongestPollMs}));
  }

  void start(size_t request) {
    if (idle_.empty()) {
      flights_.push_back(std::make_unique<Flight>());
      idle_.push_back(flights_.back().get());
      idle_.back()->easy.reset(curl_easy_init());
      WH_CHECK(idle_.back()->easy != nullptr);
    }
    Flight& flight = *idle_.back();
    idle_.pop_back();
    CURL* easy = flight.easy.get();
    const std::string& body = plan_.bodies[request];
    set_target(easy, target_, headers_.get());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.data());
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Flight::on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &flight);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &flight);
    flight.request = request;
    flight.reader = {};
    flight.sent = Clock::now();
    curl_multi_add_handle(multi_.get(), easy);
  }

  // Whether any request has ended.
  bool take_ended() {
    bool any = false;
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      char* flight = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &flight);
      curl_multi_remove_handle(multi_.get(), message->easy_handle);
      end(*reinterpret_cast<Flight*>(flight), code);
      any = true;
    }
    return any;
  }

  void end(Flight& flight, CURLcode code) {
    const bool whole = code == CURLE_OK;
    BenchAnswer answer =
        flight.reader.finish(flight.status(), seconds_since(flight.sent), whole ? "" : kind_of(code),
                             whole ? "" : curl_easy_strerror(code));
    answer.detail.resize(std::min(answer.detail.size(), kLongestDetail));
    result_.answers[flight.request] = std::move(answer);
    result_.seconds = seconds_since(begin_);
    ++ended_;
    idle_.push_back(&flight);
  }

  const LoadTarget& target_;
  const LoadPlan& plan_;
  Headers headers_;
  Multi multi_;
  std::vector<std::unique_ptr<Flight>> flights_;
  std::vector<Flight*> idle_;
  size_t next_ = 0;   // request to be sent
  size_t ended_ = 0;  // requests
  Clock::time_point begin_;
  LoadResult result_;
};

size_t append_text(char* data, size_t size, size_t number, void* text) {
  auto& whole = *static_cast<std::string*>(text);
  if (whole.size() + size * number > kLongestText) return 0;
  whole.append(data, size * number);
  return size * number;
}

}  // namespace

LoadResult run_load(const LoadTarget& target, const LoadPlan& plan) { return Load(target, plan).run(); }

Result<std::string> fetch_text(const LoadTarget& target) {
  const Easy easy(curl_easy_init());
  WH_CHECK(easy != nullptr);
  const Headers headers = make_headers(target);
  std::string text;
  set_target(easy.get(), target, headers.get());
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &append_text);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &text);
  const CURLcode code = curl_easy_perform(easy.get());
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  if (code != CURLE_OK)
    return make_error(Code::kUnavailable, "{} cannot be read: {}", target.url, curl_easy_strerror(code));
  if (status != 200)
    return make_error(Code::kUnavailable, "{} answers {}: {}", target.url, status,
                      text.substr(0, kLongestDetail));
  return text;
}

}  // namespace whippet
