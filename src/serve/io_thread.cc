#include "serve/io_thread.h"

#include <pthread.h>

#include <boost/asio/post.hpp>
#include <utility>

namespace whippet::serve {
namespace {

constexpr size_t kScratch = 64 << 10;
constexpr auto kTick = std::chrono::milliseconds(100);
constexpr size_t kKeptBuffer = 4 << 20;  // bytes; what one wild step needed is not kept for ever

}  // namespace

IoThread::IoThread(Shared& shared, uint32_t index, asio::ssl::context* tls)
    : shared_(shared), index_(index), tls_(tls), scratch_(kScratch) {}

IoThread::~IoThread() { stop(); }

void IoThread::start() {
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "whippet-io");
    schedule_tick();
    context_.run();
  });
}

void IoThread::stop() {
  if (!thread_.joinable()) return;
  asio::post(context_, [this] {
    for (size_t slot = 0; slot < slots_.size(); ++slot)
      if (const std::shared_ptr<Connection> connection = slots_[slot]) connection->close();
    context_.stop();
  });
  thread_.join();
}

void IoThread::deliver(Deliveries& batch) {
  if (batch.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    inbox_.take(batch);
    if (std::exchange(posted_, true)) return;
  }
  asio::post(context_, [this] { take_deliveries(); });
}

// A connection gets all that a step has for it with one write, from where the bytes lie.
void IoThread::take_deliveries() {
  {
    const std::lock_guard lock(mutex_);
    posted_ = false;
    taken_.take(inbox_);
  }
  touched_.clear();
  for (size_t i = 0; i < taken_.items.size(); ++i) {
    Connection* connection = find(taken_.items[i].to);
    if (connection == nullptr) continue;
    const auto at = static_cast<int32_t>(i);
    if (connection->first_delivery < 0) {
      connection->first_delivery = at;
      touched_.push_back(connection);
    } else {
      taken_.items[static_cast<size_t>(connection->last_delivery)].next = at;
    }
    connection->last_delivery = at;
  }
  for (Connection* connection : touched_) connection->take(taken_);
  taken_.clear();
  if (taken_.bytes.capacity() > kKeptBuffer) taken_.bytes = {};
  removed_.clear();
}

void IoThread::add(tcp::socket socket) {
  uint32_t slot = static_cast<uint32_t>(slots_.size());
  if (free_slots_.empty()) {
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  slots_[slot] = std::make_shared<Connection>(shared_, *this, slot, std::move(socket));
  slots_[slot]->start();
}

void IoThread::remove(uint32_t slot) {
  removed_.push_back(std::move(slots_[slot]));
  free_slots_.push_back(slot);
}

Connection* IoThread::find(const Address& to) {
  Connection* connection = to.slot < slots_.size() ? slots_[to.slot].get() : nullptr;
  return connection != nullptr && connection->awaits(to.exchange) ? connection : nullptr;
}

void IoThread::abort_answers() {
  for (size_t slot = 0; slot < slots_.size(); ++slot)
    if (slots_[slot]) slots_[slot]->abort_answer();
}

void IoThread::schedule_tick() {
  timer_.expires_after(kTick);
  timer_.async_wait([this](const error_code& failure) {
    if (!failure) tick();
  });
}

void IoThread::tick() {
  const Clock::time_point now = Clock::now();
  for (size_t slot = 0; slot < slots_.size(); ++slot)
    if (slots_[slot]) slots_[slot]->tick(now);
  removed_.clear();
  schedule_tick();
}

}  // namespace whippet::serve
