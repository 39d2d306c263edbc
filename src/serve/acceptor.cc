#include "serve/acceptor.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/log.h"

namespace whippet::serve {
namespace {

constexpr auto kPause = std::chrono::milliseconds(100);  // where no descriptor is left
constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

}  // namespace

Acceptor::Acceptor(Shared& shared, std::vector<std::unique_ptr<IoThread>>& threads)
    : shared_(shared),
      threads_(threads),
      acceptor_(threads.front()->context()),
      pause_(threads.front()->context()) {}

Status Acceptor::listen(const std::string& host, uint16_t port) {
  error_code failure;
  tcp::resolver resolver(threads_.front()->context());
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, failure);
  if (failure || found.empty())
    return make_error(Code::kInvalidArgument, "--host {}: no such address ({})", host, failure.message());
  const tcp::endpoint end = found.begin()->endpoint();
  acceptor_.open(end.protocol(), failure);
  if (!failure) acceptor_.set_option(tcp::acceptor::reuse_address(true), failure);
  if (!failure && end.address().is_v6()) acceptor_.set_option(asio::ip::v6_only(false), failure);
  if (!failure) acceptor_.bind(end, failure);
  if (!failure) acceptor_.listen(asio::socket_base::max_listen_connections, failure);
  if (failure)
    return make_error(Code::kUnavailable, "cannot listen on {} port {}: {} (--host, --port)", host, port,
                      failure.message());
  port_ = acceptor_.local_endpoint(failure).port();
  return {};
}

void Acceptor::close() {
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

void Acceptor::accept() {
  IoThread& thread = *threads_[next_++ % threads_.size()];
  acceptor_.async_accept(thread.context(), [this, &thread](const error_code& failure, tcp::socket socket) {
    if (failure == asio::error::operation_aborted || !acceptor_.is_open()) return;
    if (!failure) {
      take(std::move(socket), thread);
      return accept();
    }
    // Out of descriptors or memory: those that are open go on, and some will close.
    log_warning("cannot take a connection: {}", failure.message());
    pause_.expires_after(kPause);
    pause_.async_wait([this](const error_code& stopped) {
      if (!stopped) accept();
    });
  });
}

void Acceptor::take(tcp::socket socket, IoThread& thread) {
  if (shared_.counters.connections >= shared_.config.max_connections) {
    ++shared_.counters.connections_refused;
    error_code ignored;
    socket.non_blocking(true, ignored);
    if (thread.tls() == nullptr) socket.write_some(asio::buffer(kFull), ignored);
    return;
  }
  if (threads_.size() == 1) return thread.add(std::move(socket));
  auto shared_socket = std::make_shared<tcp::socket>(std::move(socket));  // a task must be copyable
  asio::post(thread.context(), [&thread, shared_socket] { thread.add(std::move(*shared_socket)); });
}

}  // namespace whippet::serve
