// Answers of many requests, written in the order in which the requests came while later ones still run.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "whippet/request.h"

namespace whippet {

// push() and the slots' users are any threads; `write` is called on the queue's own thread.
class AnswerQueue {
 public:
  // One request's place. Its owner is the queue; the pointer is good until finish() was called on it.
  struct Slot {
    RequestOutput output;
    nlohmann::ordered_json id;  // null: none
    int64_t line = 0;
    bool done = false;
  };

  // write() is called with each slot in order; an error of it ends the queue (stopped() is true then).
  AnswerQueue(size_t most_in_flight, std::function<Status(const Slot&)> write);
  ~AnswerQueue();  // drain()

  // A place behind all others. Waits while too many are in flight; nullptr once the queue has stopped.
  Slot* push();
  void finish(Slot* slot);
  // Waits until all that was pushed is written; the first error of write().
  Status drain();
  bool stopped();

 private:
  void run();

  const size_t most_in_flight_;
  const std::function<Status(const Slot&)> write_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Slot>> slots_;
  bool closed_ = false;
  bool stopped_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace whippet
