// One client: reads requests one after the other, hands them to their routes, writes the answers, and notices
// when nobody is there any more. One I/O thread; its callbacks keep it alive.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>

#include "serve/answer_stream.h"
#include "serve/deliveries.h"
#include "serve/http_message.h"
#include "serve/request_reader.h"
#include "serve/routes.h"
#include "serve/shared.h"
#include "serve/transport.h"

namespace whippet::serve {

class IoThread;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Accepted = std::variant<std::shared_ptr<AnswerStream>, openai::ApiError>;

  Connection(Shared& shared, IoThread& io, uint32_t slot, tcp::socket socket);
  ~Connection();
  void start();
  void close();
  void tick(Clock::time_point now);  // some times a second: deadlines, silence
  // An open answer ends with an error: the server stops.
  void abort_answer();

  // Whether this request still wants what is sent to it.
  bool awaits(uint64_t exchange) const { return exchange == exchange_ && phase_ == Phase::kAnswering; }
  // The answer of a route that took its time.
  void answered(HttpResponse response);
  // What became of a chat or completion. Its deliveries may have come before.
  void accepted(Accepted outcome);
  // The chain of deliveries that begins at `first`, in order.
  void take(const Deliveries& deliveries);
  int32_t first_delivery = -1, last_delivery = -1;  // the I/O thread's, while it sorts

 private:
  enum class Phase : uint8_t {
    kHandshake,
    kIdle,       // between two requests
    kHead,       // a request has begun
    kBody,       // its head was let in
    kAnswering,  // a route works on it
    kFlushing,   // the answer is complete, the client has not taken all of it
    kLingering,  // all is sent; reads until the client closes, so that it sees the answer
    kClosed,
  };

  // connection.cc: from bytes to a route
  void set_phase(Phase phase);
  void begin_read();
  void on_read(const error_code& failure, std::string_view bytes);
  void process_input();
  bool process_one();
  void begin_request();
  void count_body(size_t size);
  void dispatch();
  void start_work(const Route& route);
  void start_answer(const Route& route);
  void check_answer(Clock::time_point now);
  void fail(int status, const std::string& problem);

  // connection_answer.cc: from an answer to bytes.
  void begin_stream(AnswerStream& answer);
  void answer_whole(int32_t status, std::string body);
  void send(std::span<const iovec> pieces);
  void send(std::string_view bytes);
  void pump();
  void on_written(const error_code& failure, size_t bytes);
  void respond(HttpResponse response);
  void finish_answer();
  void after_flush();
  void send_comment();
  void log_access() const;
  size_t unsent() const { return backlog_.size() + in_flight_.size() - in_flight_begin_; }

  Shared& shared_;
  IoThread& io_;
  const uint32_t slot_;
  Transport transport_;
  RequestReader reader_;
  Phase phase_ = Phase::kIdle;
  bool reading_ = false, writing_ = false, processing_ = false;
  bool read_ended_ = false;  // the client has shut its side
  bool keep_alive_ = true;
  bool streaming_ = false;       // the head of a stream has been sent
  Clock::time_point since_;      // in this phase
  Clock::time_point last_sent_;  // bytes were taken by the socket
  std::string input_;            // what was read and belongs to no request yet
  size_t body_counted_ = 0;      // in Shared::body_bytes

  // Of the request that is answered.
  uint64_t exchange_ = 0;
  std::shared_ptr<AnswerStream> answer_;  // shared with the engine's callbacks
  std::string request_id_;
  Clock::time_point began_;
  int32_t status_ = 0;
  uint64_t sent_bytes_ = 0;
  bool busy_ = false;  // counted as such
  std::optional<EarlyDeliveries> early_;

  std::string in_flight_;  // being written
  std::string backlog_;    // behind it
  size_t in_flight_begin_ = 0, largest_send_ = 0;
};

}  // namespace whippet::serve
