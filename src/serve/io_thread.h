// A thread that reads and writes the sockets of many connections. Everything but the functions marked so is
// for its own thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "serve/connection.h"
#include "serve/deliveries.h"
#include "serve/shared.h"

namespace whippet::serve {

class IoThread {
 public:
  // tls: nullptr for plain HTTP. Both outlive the thread.
  IoThread(Shared& shared, uint32_t index, asio::ssl::context* tls);
  ~IoThread();  // stop()

  void start();  // any thread
  void stop();   // another thread: ends at once what is open, and joins

  asio::io_context& context() { return context_; }  // post from any thread
  // Any thread: takes all of `batch` and leaves it empty.
  void deliver(Deliveries& batch);

  void add(tcp::socket socket);
  void remove(uint32_t slot);
  // The connection that waits for this request's answer, or nullptr.
  Connection* find(const Address& to);
  void abort_answers();

  uint32_t index() const { return index_; }
  uint64_t next_exchange() { return ++last_exchange_; }
  asio::ssl::context* tls() const { return tls_; }
  std::span<char> scratch() { return scratch_; }

 private:
  void take_deliveries();
  void schedule_tick();
  void tick();

  Shared& shared_;
  const uint32_t index_;
  asio::ssl::context* tls_;
  asio::io_context context_{1};
  asio::steady_timer timer_{context_};
  std::vector<char> scratch_;
  // The slots share their connections with the callbacks that wait for something.
  std::vector<std::shared_ptr<Connection>> slots_;
  std::vector<uint32_t> free_slots_;
  std::vector<std::shared_ptr<Connection>> removed_;  // let go when nobody is in the middle of them
  uint64_t last_exchange_ = 0;
  Deliveries taken_;
  std::vector<Connection*> touched_;

  std::mutex mutex_;  // guards the two below
  Deliveries inbox_;
  bool posted_ = false;

  std::thread thread_;
};

}  // namespace whippet::serve
