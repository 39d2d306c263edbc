#include "serve/counters.h"

#include <fmt/format.h>

#include <iterator>

namespace whippet::serve {
namespace {

void number(std::string& out, const char* name, const char* type, const char* help, int64_t value) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {2}\n# TYPE {0} {1}\n{0} {3}\n", name, type, help,
                 value);
}

}  // namespace

void Counters::append_prometheus(std::string& out) const {
  number(out, "whippet:http_connections", "gauge", "Open connections.", connections);
  number(out, "whippet:http_requests_busy", "gauge", "Requests whose answer is not sent yet.", busy);
  number(out, "whippet:http_connections_refused_total", "counter", "Connections over the limit.",
         static_cast<int64_t>(connections_refused.load()));
  number(out, "whippet:http_hang_ups_total", "counter", "Clients that left before their answer was complete.",
         static_cast<int64_t>(hang_ups.load()));
  number(out, "whippet:http_slow_readers_total", "counter", "Streams cut off because nobody read them.",
         static_cast<int64_t>(slow_readers.load()));
  out +=
      "# HELP whippet:http_responses_total Answers by status.\n# TYPE whippet:http_responses_total counter\n";
  for (size_t status = 0; status < responses.size(); ++status) {
    const uint64_t count = responses[status].load(std::memory_order_relaxed);
    if (count > 0)
      fmt::format_to(std::back_inserter(out), "whippet:http_responses_total{{status=\"{}\"}} {}\n", status,
                     count);
  }
}

}  // namespace whippet::serve
