// What the server itself counts, beside the engine's metrics. Relaxed atomics; any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace whippet::serve {

struct Counters {
  std::atomic<int64_t> connections = 0;                // open now
  std::atomic<uint64_t> connections_refused = 0;       // over --max-connections
  std::array<std::atomic<uint64_t>, 600> responses{};  // by status
  std::atomic<uint64_t> hang_ups = 0;                  // clients that left before their answer was complete
  std::atomic<uint64_t> slow_readers = 0;              // cut off
  std::atomic<int64_t> busy = 0;                       // requests read, whose answer has not been sent whole

  void count_response(int status) {
    if (status >= 0 && status < static_cast<int>(responses.size()))
      responses[static_cast<size_t>(status)].fetch_add(1, std::memory_order_relaxed);
  }
  // Prometheus text; follows the engine's.
  void append_prometheus(std::string& out) const;
};

}  // namespace whippet::serve
