#include "serve/transport.h"

#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <utility>

namespace whippet::serve {
namespace {

constexpr size_t kTlsBuffer = 4 << 10;

error_code system_error() { return {errno, boost::system::system_category()}; }

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Transport::Transport(tcp::socket socket, asio::ssl::context* tls, std::span<char> scratch)
    : socket_(std::move(socket)), scratch_(scratch) {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  if (tls == nullptr) return;
  stream_.emplace(socket_, *tls);
  tls_buffer_.resize(kTlsBuffer);
}

void Transport::handshake(OnDone done) {
  stream_->async_handshake(asio::ssl::stream_base::server,
                           [done = std::move(done)](const error_code& failure) { done(failure, 0); });
}

void Transport::read(OnRead done) {
  if (!stream_) return read_plain(std::move(done));
  stream_->async_read_some(asio::buffer(tls_buffer_),
                           [this, done = std::move(done)](const error_code& failure, size_t count) {
                             done(failure, std::string_view(tls_buffer_.data(), count));
                           });
}

// A plain connection that waits holds no buffer.
void Transport::read_plain(OnRead done) {
  socket_.async_wait(
      tcp::socket::wait_read, [this, done = std::move(done)](const error_code& failure) mutable {
        if (failure) return done(failure, {});
        const ssize_t count = ::recv(socket_.native_handle(), scratch_.data(), scratch_.size(), 0);
        if (count < 0 && would_block()) return read_plain(std::move(done));
        if (count < 0) return done(system_error(), {});
        if (count == 0) return done(asio::error::eof, {});
        done({}, std::string_view(scratch_.data(), static_cast<size_t>(count)));
      });
}

ssize_t Transport::send_now(std::span<const iovec> pieces) {
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(pieces.data());  // only read
  message.msg_iovlen = pieces.size();
  const ssize_t count = pieces.size() == 1 ? ::send(socket_.native_handle(), pieces[0].iov_base,
                                                    pieces[0].iov_len, MSG_NOSIGNAL)
                                           : ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL);
  if (count >= 0) return count;
  return would_block() ? 0 : -1;
}

void Transport::write(std::string_view bytes, OnDone done) {
  if (stream_) return stream_->async_write_some(asio::buffer(bytes.data(), bytes.size()), std::move(done));
  socket_.async_wait(tcp::socket::wait_write,
                     [this, bytes, done = std::move(done)](const error_code& failure) {
                       if (failure) return done(failure, 0);
                       const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
                       const ssize_t count = send_now(std::span(&piece, 1));
                       if (count < 0) return done(system_error(), 0);
                       done({}, static_cast<size_t>(count));
                     });
}

void Transport::finish() {
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

void Transport::close() {
  error_code ignored;
  socket_.close(ignored);
}

bool Transport::abandoned() {
  pollfd asked{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&asked, 1, 0) == 1 && (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

std::string Transport::peer() const {
  error_code failure;
  const tcp::endpoint end = socket_.remote_endpoint(failure);
  return failure ? "?" : end.address().to_string();
}

}  // namespace whippet::serve
