#include "cli/answer_queue.h"

#include <utility>

namespace whippet {

AnswerQueue::AnswerQueue(size_t most_in_flight, std::function<Status(const Slot&)> write)
    : most_in_flight_(most_in_flight), write_(std::move(write)), thread_([this] { run(); }) {}

AnswerQueue::~AnswerQueue() { static_cast<void>(drain()); }

AnswerQueue::Slot* AnswerQueue::push() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopped_ || slots_.size() < most_in_flight_; });
  if (stopped_) return nullptr;
  slots_.push_back(std::make_unique<Slot>());
  return slots_.back().get();
}

void AnswerQueue::finish(Slot* slot) {
  const std::lock_guard lock(mutex_);
  slot->done = true;
  changed_.notify_all();
}

Status AnswerQueue::drain() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  return status_;
}

bool AnswerQueue::stopped() {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void AnswerQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return slots_.empty() ? closed_ : slots_.front()->done; });
    if (slots_.empty()) return;
    // The slot leaves the queue after it was written, so that what is in flight includes it.
    const Slot& slot = *slots_.front();
    lock.unlock();
    Status written = stopped_ ? Status{} : write_(slot);
    lock.lock();
    if (!written.ok()) {
      status_ = std::move(written);
      stopped_ = true;
    }
    slots_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace whippet
