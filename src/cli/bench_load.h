// Sends the requests of `whippet bench serve` at their times over libcurl, many at once on one thread, and
// gathers what each was answered. Knows OpenAI's API only as addresses and bodies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/bench_answer.h"

namespace whippet {

struct LoadTarget {
  std::string url;         // where the requests go
  std::string api_key;     // empty: none
  double timeout_s = 600;  // of one answer
};

struct LoadPlan {
  std::vector<std::string> bodies;  // of the requests, JSON
  std::vector<double> starts;       // seconds from the beginning, ascending; when each is due
  int32_t max_concurrency = 0;      // at most so many at a time: what is due waits; 0: no limit
};

struct LoadResult {
  std::vector<BenchAnswer> answers;  // in the order of the plan
  double seconds = 0;                // from the first request to the end of the last answer
};

LoadResult run_load(const LoadTarget& target, const LoadPlan& plan);

// The body of a GET; kUnavailable says why there is none.
Result<std::string> fetch_text(const LoadTarget& target);

}  // namespace whippet
