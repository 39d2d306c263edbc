// When to try a request again: broken connections, 408, 429 (Retry-After) and 5xx, with growing pauses, a
// bounded number of times in a row without progress.
#pragma once

#include <chrono>
#include <string>

#include "base/error.h"
#include "hub/environment.h"
#include "hub/http.h"

namespace whippet {

class Retry {
 public:
  explicit Retry(const HubConfig& config) : config_(config) {}

  // Whether the outcome is one that time may heal.
  static bool worth(const Result<HttpResponse>& outcome);
  // Pauses and returns true; false when the attempts are used up. `progressed` starts the count anew.
  bool again(const Result<HttpResponse>& outcome, bool progressed);

 private:
  const HubConfig& config_;
  int attempts_ = 1;
};

// One request with retries and no sink. Statuses that retries do not heal come back as values, also 5xx at
// the end.
Result<HttpResponse> send_with_retries(HttpClient& client, const HttpRequest& request,
                                       const HubConfig& config);

}  // namespace whippet
