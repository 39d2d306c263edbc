// Takes connections and deals them out to the I/O threads. Runs on the first of them.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/io_thread.h"

namespace whippet::serve {

class Acceptor {
 public:
  // The threads outlive it.
  Acceptor(Shared& shared, std::vector<std::unique_ptr<IoThread>>& threads);

  Status listen(const std::string& host, uint16_t port);
  uint16_t port() const { return port_; }
  void start() { accept(); }  // once, before the threads run
  void close();               // the first I/O thread

 private:
  void accept();
  void take(tcp::socket socket, IoThread& thread);

  Shared& shared_;
  std::vector<std::unique_ptr<IoThread>>& threads_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  uint16_t port_ = 0;
  size_t next_ = 0;
};

}  // namespace whippet::serve
