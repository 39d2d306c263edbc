// The second half of Connection: from an answer to bytes on the wire.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"
#include "serve/connection.h"
#include "serve/io_thread.h"

namespace whippet::serve {
namespace {

constexpr size_t kMaxPieces = 16;  // of one write
constexpr size_t kMaxPath = 200;   // bytes of a path in the log

iovec piece_of(std::string_view bytes) { return {const_cast<char*>(bytes.data()), bytes.size()}; }

}  // namespace

void Connection::answered(HttpResponse response) {
  respond(std::move(response));
  process_input();
  begin_read();
}

void Connection::accepted(Accepted outcome) {
  if (auto* error = std::get_if<openai::ApiError>(&outcome)) {
    HttpResponse response = error_response(*error);
    if (error->status == 429 || error->status == 503)
      response.headers.emplace_back("Retry-After", fmt::to_string(shared_.retry_after_s.load()));
    return answered(std::move(response));
  }
  answer_ = std::move(std::get<0>(outcome));
  if (shared_.aborting) abort_answer();
  if (answer_->stream()) return begin_stream(*answer_);
  EarlyDeliveries early = std::move(*std::exchange(early_, std::nullopt));
  if (early.last) answer_whole(early.status, std::move(early.bytes));
}

void Connection::answer_whole(int32_t status, std::string body) {
  HttpResponse response{.status = status, .body = std::move(body)};
  if (!answer_->ignored_fields().empty())
    response.headers.emplace_back("X-Whippet-Ignored-Fields", answer_->ignored_fields());
  answered(std::move(response));
}

void Connection::begin_stream(AnswerStream& answer) {
  const HttpRequest& request = reader_.request();
  HttpResponse head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}, {"X-Request-Id", request_id_}};
  if (!answer.ignored_fields().empty())
    head.headers.emplace_back("X-Whippet-Ignored-Fields", answer.ignored_fields());
  add_cors(shared_, request, head);
  if (request.http_1_0) keep_alive_ = false;  // its end is the end of the connection
  std::string bytes;
  append_head(head, {.content_length = -1, .keep_alive = keep_alive_, .http_1_0 = request.http_1_0}, bytes);
  bytes += answer.take_opening();
  const EarlyDeliveries early = std::move(*std::exchange(early_, std::nullopt));
  bytes += early.bytes;
  streaming_ = true;
  largest_send_ = 0;
  status_ = 200;
  send(bytes);
  if (!early.last || phase_ != Phase::kAnswering) return;
  finish_answer();
  process_input();
  begin_read();
}

void Connection::take(const Deliveries& deliveries) {
  std::array<iovec, kMaxPieces> pieces;
  size_t count = 0;
  bool last = false;
  const int32_t first = std::exchange(first_delivery, -1);
  for (int32_t at = first; at >= 0; at = deliveries.items[static_cast<size_t>(at)].next) {
    const Delivery& delivery = deliveries.items[static_cast<size_t>(at)];
    const std::string_view bytes =
        std::string_view(deliveries.bytes).substr(delivery.begin, delivery.end - delivery.begin);
    last |= delivery.last;
    if (early_) {
      early_->bytes += bytes;
      early_->status = delivery.status;
      early_->last |= delivery.last;
      continue;
    }
    if (delivery.status != 0) return answer_whole(delivery.status, std::string(bytes));
    if (bytes.empty()) continue;
    pieces[count++] = piece_of(bytes);
    if (count < kMaxPieces) continue;
    send(pieces);
    count = 0;
    if (phase_ != Phase::kAnswering) return;
  }
  if (early_) return;
  if (count > 0) send(std::span(pieces).first(count));
  if (!last || phase_ != Phase::kAnswering) return;
  finish_answer();
  process_input();
  begin_read();
}

void Connection::abort_answer() {
  if (answer_) answer_->cut(AnswerStream::Cut::kShutdown);
}

void Connection::send(std::string_view bytes) {
  const iovec piece = piece_of(bytes);
  send(std::span(&piece, 1));
}

// The usual case ends with one system call. What the socket does not take is kept, up to a bound for streams:
// beyond the largest that was sent at once, which may be a long prompt with all its logprobs, and for whose
// size no reader is to blame.
void Connection::send(std::span<const iovec> pieces) {
  size_t size = 0, skip = 0;
  for (const iovec& piece : pieces) size += piece.iov_len;
  largest_send_ = std::max(largest_send_, size);
  if (unsent() == 0 && !transport_.tls()) {
    const ssize_t taken = transport_.send_now(pieces);
    if (taken < 0) return on_read(asio::error::connection_reset, {});
    if (taken > 0) last_sent_ = Clock::now();
    skip = static_cast<size_t>(taken);
  }
  sent_bytes_ += skip;
  for (const iovec& piece : pieces) {
    const size_t here = std::min(skip, piece.iov_len);
    skip -= here;
    backlog_.append(static_cast<const char*>(piece.iov_base) + here, piece.iov_len - here);
  }
  if (streaming_ && unsent() > shared_.config.max_stream_backlog + largest_send_) {
    ++shared_.counters.slow_readers;
    log_warning("request {}: {} bytes wait to be read: cut off", request_id_, unsent());
    return close();
  }
  pump();
}

// Writes what is kept, when the socket has room.
void Connection::pump() {
  if (writing_ || unsent() == 0 || phase_ == Phase::kClosed) return;
  if (in_flight_begin_ == in_flight_.size()) {
    in_flight_.clear();
    in_flight_begin_ = 0;
    in_flight_.swap(backlog_);
  }
  writing_ = true;
  transport_.write(std::string_view(in_flight_).substr(in_flight_begin_),
                   [self = shared_from_this()](const error_code& failure, size_t bytes) {
                     self->writing_ = false;
                     if (self->phase_ != Phase::kClosed) self->on_written(failure, bytes);
                   });
}

void Connection::on_written(const error_code& failure, size_t bytes) {
  if (failure) return on_read(asio::error::connection_reset, {});
  if (bytes > 0) last_sent_ = Clock::now();
  sent_bytes_ += bytes;
  in_flight_begin_ += bytes;
  if (unsent() > 0) return pump();
  in_flight_ = {};
  backlog_ = {};
  in_flight_begin_ = 0;
  if (phase_ != Phase::kFlushing) return;
  after_flush();
  process_input();
  begin_read();
}

void Connection::respond(HttpResponse response) {
  const HttpRequest& request = reader_.request();
  keep_alive_ =
      keep_alive_ && !response.close && !read_ended_ && shared_.gate.life() != Gate::Life::kDraining;
  status_ = response.status;
  response.headers.emplace_back("X-Request-Id", request_id_);
  add_cors(shared_, request, response);
  std::string bytes;
  append_head(response,
              {.content_length = static_cast<int64_t>(response.body.size()),
               .keep_alive = keep_alive_,
               .http_1_0 = request.http_1_0},
              bytes);
  if (!request.is_head()) bytes += response.body;
  streaming_ = false;
  set_phase(Phase::kAnswering);
  send(bytes);
  if (phase_ != Phase::kClosed) finish_answer();
}

void Connection::finish_answer() {
  log_access();
  count_body(0);
  exchange_ = 0;
  answer_.reset();
  early_.reset();
  streaming_ = false;
  keep_alive_ = keep_alive_ && shared_.gate.life() != Gate::Life::kDraining;
  set_phase(Phase::kFlushing);
  if (unsent() == 0) after_flush();
}

void Connection::after_flush() {
  busy_ = false;
  --shared_.counters.busy;
  if (keep_alive_ && !read_ended_) {
    reader_.reset();
    return set_phase(Phase::kIdle);
  }
  transport_.finish();
  set_phase(Phase::kLingering);
  input_ = {};
  if (read_ended_) close();
}

void Connection::send_comment() {
  constexpr std::string_view kComment = ": still here\n\n";
  if (reader_.request().http_1_0) return send(kComment);
  send(fmt::format("{:x}\r\n{}\r\n", kComment.size(), kComment));
}

void Connection::log_access() const {
  shared_.counters.count_response(status_);
  const HttpRequest& request = reader_.request();
  if (!shared_.config.access_log || !log_enabled(LogLevel::kInfo)) return;
  const Route* route = find_route(request);
  if (route != nullptr && route->probe) return;
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - began_).count();
  log_info("{} \"{} {}\" {} {} bytes {:.1f} ms {}", transport_.peer(), printable(request.method, 16),
           printable(request.path(), kMaxPath), status_, sent_bytes_ + unsent(), ms, request_id_);
}

}  // namespace whippet::serve
