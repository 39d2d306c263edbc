#include "hub/retry.h"

#include <algorithm>
#include <charconv>
#include <thread>

#include "base/log.h"
#include "hub/url.h"

namespace whippet {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kFirstPause{500};
constexpr milliseconds kLongestPause{60'000};

// Seconds as a number; a date is not worth parsing and falls back to the growing pause.
milliseconds retry_after(const HttpResponse& response) {
  const std::string text = response.header("retry-after");
  int seconds = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (parsed.ec != std::errc() || seconds < 0) return milliseconds(0);
  return std::min(kLongestPause, milliseconds(1000) * std::min(seconds, 3600));
}

}  // namespace

bool Retry::worth(const Result<HttpResponse>& outcome) {
  if (!outcome.ok()) return outcome.error().code == Code::kUnavailable;
  const int status = outcome->status;
  return status == 408 || status == 429 || status >= 500;
}

bool Retry::again(const Result<HttpResponse>& outcome, bool progressed) {
  if (progressed) attempts_ = 1;
  if (attempts_ >= config_.max_attempts) return false;
  milliseconds pause = std::min(kLongestPause, kFirstPause * (1 << std::min(attempts_ - 1, 7)));
  std::string why;
  if (outcome.ok()) {
    pause = std::max(pause, retry_after(*outcome));
    why = fmt::format("{} answers {}", display_url(outcome->url), outcome->status);
  } else {
    why = outcome.error().message;
  }
  ++attempts_;
  log_warning("{}; attempt {} of {} in {:.1f} s", why, attempts_, config_.max_attempts,
              static_cast<double>(pause.count()) / 1000);
  if (config_.sleep) {
    config_.sleep(pause);
    return true;
  }
  const auto cancelled = [this] { return config_.cancelled != nullptr && config_.cancelled->load(); };
  for (milliseconds slept{0}; slept < pause && !cancelled(); slept += milliseconds(100)) {
    std::this_thread::sleep_for(milliseconds(100));
  }
  return true;
}

Result<HttpResponse> send_with_retries(HttpClient& client, const HttpRequest& request,
                                       const HubConfig& config) {
  Retry retry(config);
  while (true) {
    Result<HttpResponse> outcome = client.send(request);
    if (!Retry::worth(outcome) || !retry.again(outcome, false)) return outcome;
  }
}

}  // namespace whippet
