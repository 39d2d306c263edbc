#include "serve/connection.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/log.h"
#include "serve/io_thread.h"
#include "serve/request_id.h"

namespace whippet::serve {
namespace {

// What a client may send ahead while its answer is made; more waits in the socket.
constexpr size_t kMaxAhead = 64 << 10;
constexpr auto kLinger = std::chrono::seconds(2);
constexpr double kDrainIdle = 1;  // seconds for a first request while the server drains: it is told so

bool over(Clock::time_point since, Clock::time_point now, double limit_s) {
  return limit_s > 0 && std::chrono::duration<double>(now - since).count() > limit_s;
}

// Whether a request may ask for a grammar, which may have to be compiled: seen without reading the body.
bool may_wait(std::string_view body) {
  for (const std::string_view field :
       {"\"response_format\"", "\"structured_outputs\"", "\"guided_", "\"tool_choice\"", "\"strict\""})
    if (body.find(field) != std::string_view::npos) return true;
  return false;
}

}  // namespace

Connection::Connection(Shared& shared, IoThread& io, uint32_t slot, tcp::socket socket)
    : shared_(shared),
      io_(io),
      slot_(slot),
      transport_(std::move(socket), io.tls(), io.scratch()),
      reader_(shared.config.max_request_size) {
  ++shared_.counters.connections;
}

Connection::~Connection() { --shared_.counters.connections; }

void Connection::start() {
  last_sent_ = Clock::now();
  if (!transport_.tls()) {
    set_phase(Phase::kIdle);
    return begin_read();
  }
  set_phase(Phase::kHandshake);
  transport_.handshake([self = shared_from_this()](const error_code& failure, size_t) {
    if (self->phase_ == Phase::kClosed) return;
    if (failure) return self->close();
    self->set_phase(Phase::kIdle);
    self->begin_read();
  });
}

void Connection::set_phase(Phase phase) {
  phase_ = phase;
  since_ = Clock::now();
}

void Connection::close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  if (answer_) answer_->cut(AnswerStream::Cut::kHangUp);
  answer_.reset();
  if (busy_) --shared_.counters.busy;
  busy_ = false;
  count_body(0);
  transport_.close();
  io_.remove(slot_);
}

// What a client sends while its answer is made is read as well: that is how its leaving is noticed.
void Connection::begin_read() {
  if (reading_ || read_ended_ || phase_ == Phase::kClosed || input_.size() >= kMaxAhead) return;
  reading_ = true;
  transport_.read([self = shared_from_this()](const error_code& failure, std::string_view bytes) {
    self->reading_ = false;
    if (self->phase_ != Phase::kClosed) self->on_read(failure, bytes);
  });
}

void Connection::on_read(const error_code& failure, std::string_view bytes) {
  if (failure) {
    read_ended_ = true;
    // An answer that is complete still goes to a client that has only shut its own side.
    if (phase_ == Phase::kFlushing && failure == asio::error::eof) return;
    if (phase_ == Phase::kAnswering) {
      ++shared_.counters.hang_ups;
      status_ = 499;
      log_access();
    }
    return close();
  }
  if (phase_ != Phase::kLingering) input_ += bytes;
  process_input();
  begin_read();
}

void Connection::process_input() {
  if (processing_) return;
  processing_ = true;
  while (process_one()) {
  }
  processing_ = false;
}

// One turn of the reader; false when more must happen first.
bool Connection::process_one() {
  if (phase_ != Phase::kIdle && phase_ != Phase::kHead && phase_ != Phase::kBody) return false;
  size_t used = 0;
  const RequestReader::State state = reader_.read(input_, used);
  input_.erase(0, used);
  switch (state) {
    case RequestReader::State::kNeedMore:
      if (phase_ == Phase::kIdle && !input_.empty()) set_phase(Phase::kHead);
      if (phase_ == Phase::kBody) count_body(reader_.body_size());
      if (input_.capacity() > kMaxAhead && input_.empty()) input_ = {};
      return false;
    case RequestReader::State::kHead:
      set_phase(Phase::kBody);
      begin_request();
      return true;
    case RequestReader::State::kComplete:
      count_body(0);
      dispatch();
      return true;
    case RequestReader::State::kFailed:
      fail(reader_.status(), reader_.problem());
      return false;
  }
  return false;
}

// The head is there: what can be said now is said before the body comes.
void Connection::begin_request() {
  HttpRequest& request = reader_.request();
  began_ = since_;
  request_id_ = request_id(request.request_id);
  keep_alive_ = request.keep_alive;
  status_ = 0;
  sent_bytes_ = 0;
  busy_ = true;
  ++shared_.counters.busy;
  if (std::optional<HttpResponse> refusal = check_head(shared_, request)) {
    refusal->close |= request.has_body;  // which nobody is going to read
    return respond(std::move(*refusal));
  }
  if (request.expects_continue && request.has_body) send("HTTP/1.1 100 Continue\r\n\r\n");
}

// Many large bodies at once are refused before they fill the memory.
void Connection::count_body(size_t size) {
  const uint64_t all = shared_.body_bytes += size - body_counted_;
  body_counted_ = size;
  if (size > 0 && all > shared_.max_body_bytes())
    fail(503, "too many large requests at once: try again later");
}

void Connection::fail(int status, const std::string& problem) {
  if (!busy_) {
    began_ = since_;
    request_id_ = request_id(reader_.request().request_id);
    busy_ = true;
    ++shared_.counters.busy;
  }
  HttpResponse response = error_response(openai::http_error(status, problem));
  response.close = true;
  respond(std::move(response));
}

void Connection::dispatch() {
  const Route* route = find_route(reader_.request());
  if (route == nullptr) return fail(404, "there is nothing here");
  set_phase(Phase::kAnswering);
  streaming_ = false;
  early_.reset();
  exchange_ = io_.next_exchange();
  switch (route->kind) {
    case Route::Kind::kAtOnce:
      return respond(route->answer(shared_, reader_.request()));
    case Route::Kind::kWork:
      return start_work(*route);
    case Route::Kind::kChat:
    case Route::Kind::kCompletion:
      return start_answer(*route);
  }
}

void Connection::start_work(const Route& route) {
  const Address from{.io_thread = io_.index(), .slot = slot_, .exchange = exchange_};
  auto request = std::make_shared<HttpRequest>();  // a task must be copyable
  request->body = std::move(reader_.request().body);
  shared_.run_work([&shared = shared_, &io = io_, from, &route, request] {
    auto response = std::make_shared<HttpResponse>(route.answer(shared, *request));
    asio::post(io.context(), [&io, from, response] {
      if (Connection* connection = io.find(from)) connection->answered(std::move(*response));
    });
  });
}

void Connection::start_answer(const Route& route) {
  const HttpRequest& request = reader_.request();
  auto asked = std::make_shared<AnswerStream::Asked>();
  asked->kind =
      route.kind == Route::Kind::kChat ? AnswerStream::Kind::kChat : AnswerStream::Kind::kCompletion;
  asked->body = std::move(reader_.request().body);
  asked->request_id = request_id_;
  asked->from = {.io_thread = io_.index(), .slot = slot_, .exchange = exchange_};
  asked->chunked = !request.http_1_0;
  early_.emplace();
  const auto& run = may_wait(asked->body) ? shared_.run_waiting_work : shared_.run_work;
  run([&shared = shared_, &io = io_, asked] {
    const Address from = asked->from;
    auto outcome =
        std::make_shared<Accepted>(AnswerStream::start(shared, *shared.service.load(), std::move(*asked)));
    asio::post(io.context(), [&io, from, outcome] {
      if (Connection* connection = io.find(from)) return connection->accepted(std::move(*outcome));
      if (const auto* answer = std::get_if<0>(&*outcome)) (*answer)->cut(AnswerStream::Cut::kHangUp);
    });
  });
}

void Connection::tick(Clock::time_point now) {
  const ServerConfig& config = shared_.config;
  const bool draining = shared_.gate.life() == Gate::Life::kDraining;
  switch (phase_) {
    case Phase::kHandshake:
      if (over(since_, now, config.header_timeout_s)) close();
      break;
    case Phase::kIdle:
      if (over(since_, now, draining ? kDrainIdle : config.idle_timeout_s)) close();
      break;
    case Phase::kHead:
      if (over(since_, now, config.header_timeout_s)) fail(408, "the head of the request took too long");
      break;
    case Phase::kBody:
      if (over(since_, now, config.body_timeout_s)) fail(408, "the body of the request took too long");
      break;
    case Phase::kAnswering:
      check_answer(now);
      break;
    case Phase::kFlushing:
      if (over(last_sent_, now, config.write_timeout_s)) close();
      break;
    case Phase::kLingering:
      if (now - since_ > kLinger) close();
      break;
    case Phase::kClosed:
      break;
  }
}

void Connection::check_answer(Clock::time_point now) {
  if (!reading_ && !read_ended_ && transport_.abandoned()) return on_read(asio::error::connection_reset, {});
  if (unsent() > 0) {
    if (!over(last_sent_, now, shared_.config.write_timeout_s)) return;
    ++shared_.counters.slow_readers;
    log_warning("request {}: nothing was read for {} s: cut off", request_id_,
                shared_.config.write_timeout_s);
    return close();
  }
  if (streaming_ && over(last_sent_, now, shared_.config.comment_interval_s)) send_comment();
}

}  // namespace whippet::serve
