// The socket of one connection, plain or with TLS. What is plain is sent at once, from wherever it lies; with
// TLS everything is asynchronous. One I/O thread.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace whippet::serve {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

class Transport {
 public:
  using OnRead = std::function<void(const error_code& failure, std::string_view bytes)>;
  using OnDone = std::function<void(const error_code& failure, size_t bytes)>;

  // tls: nullptr for a plain one. scratch: the I/O thread's, for what is read; used within a callback only.
  Transport(tcp::socket socket, asio::ssl::context* tls, std::span<char> scratch);

  bool tls() const { return stream_.has_value(); }
  void handshake(OnDone done);
  // The next bytes; one read at a time. They are valid during the callback.
  void read(OnRead done);
  // Plain only, never blocks: how many bytes the socket took, 0 where it is full, -1 where it is broken.
  ssize_t send_now(std::span<const iovec> pieces);
  // As much of `bytes` as goes, when it goes; they must stay where they are until then. One write at a time.
  void write(std::string_view bytes, OnDone done);
  // No more will be written: the client reads to the end, which it knows from the answer's length.
  void finish();
  void close();
  // Whether the client has left or shut its side, when nothing is being read.
  bool abandoned();
  std::string peer() const;

 private:
  void read_plain(OnRead done);

  tcp::socket socket_;
  std::optional<asio::ssl::stream<tcp::socket&>> stream_;
  std::span<char> scratch_;
  std::vector<char> tls_buffer_;  // TLS reads into it while it waits
};

}  // namespace whippet::serve
