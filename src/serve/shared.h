// What all threads of the server share. Made before they start; the parts say how they may be used.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "openai/api.h"
#include "serve/access.h"
#include "serve/counters.h"
#include "serve/deliveries.h"
#include "serve/gate.h"
#include "serve/ignored_fields.h"
#include "serve/server_config.h"

namespace whippet {
class Engine;
}

namespace whippet::serve {

using Clock = std::chrono::steady_clock;

// The engine and what the codec knows of it; there once the model is loaded.
struct Service {
  Engine* engine;
  openai::Context context;
  std::string memory_json;  // of the model: an object
};

struct Shared {
  explicit Shared(ServerConfig given) : config(std::move(given)), access(config) {}

  const ServerConfig config;
  const Access access;
  Gate gate;
  Counters counters;
  IgnoredFields ignored_fields;
  std::atomic<Service*> service = nullptr;  // nullptr while the model loads

  // Seconds since work waits and no step has ended; 0 while all is well. Written by the watch.
  std::atomic<double> stalled_s = 0;
  std::atomic<int32_t> retry_after_s = 1;  // when a place may be free again

  std::atomic<bool> aborting = false;  // the time to drain is over: answers end with an error

  // Bytes of bodies that are being received, on all connections together.
  std::atomic<uint64_t> body_bytes = 0;
  uint64_t max_body_bytes() const { return 32 * config.max_request_size; }

  // The streamer thread's own: what it has for each I/O thread so far. [io_threads]
  std::vector<Deliveries> outbox;

  // Runs a piece of work on a thread that may take its time. Any thread.
  std::function<void(std::function<void()>)> run_work;
  // The same for work that may wait long, beside the other so that nobody else waits with it.
  std::function<void(std::function<void()>)> run_waiting_work;
};

}  // namespace whippet::serve
