// Mailbox<T>: how threads speak to each other, the only object they share. Many may push; one takes all that
// is there with one lock and at most one wake-up. Vectors are swapped, so steady traffic does not allocate.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace whippet {

template <class T>
class Mailbox {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // False when the mailbox is closed: the message is dropped.
  bool push(T message) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return false;
      messages_.push_back(std::move(message));
    }
    arrived_.notify_one();
    return true;
  }

  // Moves all of `batch` in and leaves it empty, with spare capacity where there is some.
  void push_all(std::vector<T>& batch) {
    if (batch.empty()) return;
    {
      const std::lock_guard lock(mutex_);
      if (messages_.empty()) {
        messages_.swap(batch);
      } else {
        for (T& message : batch) messages_.push_back(std::move(message));
      }
      batch.clear();
    }
    arrived_.notify_one();
  }

  // Replaces `out` by all messages. Waits for the first one until `until` (nullopt: for ever; a past time:
  // not at all). False once the mailbox is closed and empty: nothing will come any more.
  bool take(std::vector<T>& out, std::optional<Time> until = std::nullopt) {
    out.clear();
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return !messages_.empty() || closed_; };
    if (until) {
      arrived_.wait_until(lock, *until, ready);
    } else {
      arrived_.wait(lock, ready);
    }
    out.swap(messages_);
    return !out.empty() || !closed_;
  }

  // Wakes the taker; later pushes are dropped, what is inside can still be taken.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    arrived_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<T> messages_;
  bool closed_ = false;
};

}  // namespace whippet
