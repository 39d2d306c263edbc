#include "serve/answer_stream.h"

#include <utility>

#include "serve/shared.h"
#include "whippet/whippet.h"

namespace whippet::serve {
namespace {

constexpr std::string_view kDone = "data: [DONE]\n\n";

openai::ApiError shutting_down() {
  return openai::http_error(503, "the server is shutting down: ask again elsewhere", "shutting_down");
}

int32_t count_answers(const std::vector<Request>& requests) {
  int32_t answers = 0;
  for (const Request& request : requests) answers += request.params.n;
  return answers;
}

openai::ApiError refusal(Gate::Verdict verdict) {
  switch (verdict) {
    case Gate::Verdict::kFull:
      return openai::http_error(429, "too many requests wait already: try again later", "queue_full");
    case Gate::Verdict::kLoading:
      return openai::http_error(503, "the model is being loaded", "loading");
    default:
      return shutting_down();
  }
}

}  // namespace

std::variant<std::shared_ptr<AnswerStream>, openai::ApiError> AnswerStream::start(Shared& shared,
                                                                                  const Service& service,
                                                                                  Asked asked) {
  const bool chat = asked.kind == Kind::kChat;
  auto parsed = chat ? openai::parse_chat(service.context, asked.body, "chatcmpl-" + asked.request_id)
                     : openai::parse_completion(service.context, asked.body, "cmpl-" + asked.request_id);
  if (auto* error = std::get_if<openai::ApiError>(&parsed)) return std::move(*error);
  asked.body = {};
  auto& exchange = std::get<0>(parsed);
  Gate::Ticket ticket;
  const Gate::Verdict verdict = shared.gate.enter(count_answers(exchange->requests()), ticket);
  if (verdict != Gate::Verdict::kOpen) return refusal(verdict);
  auto stream = std::make_shared<AnswerStream>(shared, service, std::move(exchange), std::move(asked),
                                               std::move(ticket));
  if (std::optional<openai::ApiError> error = stream->submit()) return std::move(*error);
  return stream;
}

AnswerStream::AnswerStream(Shared& shared, const Service& service, std::unique_ptr<openai::Exchange> exchange,
                           Asked asked, Gate::Ticket ticket)
    : shared_(shared),
      service_(service),
      exchange_(std::move(exchange)),
      from_(asked.from),
      chunked_(asked.chunked),
      stream_(exchange_->stream()),
      ticket_(std::move(ticket)) {}

std::optional<openai::ApiError> AnswerStream::submit() {
  ignored_fields_ = shared_.ignored_fields.note(exchange_->ignored_fields());
  if (stream_) {
    if (chunked_) {
      Chunk chunk(opening_);
      exchange_->begin_stream(opening_);
      opening_.erase(0, chunk.close());
    } else {
      exchange_->begin_stream(opening_);
    }
  }
  // Once the first is in, its events may come at any time: the exchange is not touched here any more.
  std::vector<Request> requests = std::move(exchange_->requests());
  open_ = static_cast<int32_t>(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    try {
      ids_.push_back(service_.engine->submit(
          std::move(requests[i]),
          [self = shared_from_this(), i](const Event& event) { self->on_event(i, event); }));
    } catch (const Failure& failure) {
      cut(Cut::kHangUp);  // of those before it
      return openai::submit_error(failure);
    }
  }
  return std::nullopt;
}

void AnswerStream::cut(Cut why) {
  cut_ = why;
  for (const uint64_t id : ids_) service_.engine->cancel(id);
}

void AnswerStream::on_event(size_t request, const Event& event) {
  if (event.last) --open_;
  const Cut cut = cut_.load(std::memory_order_relaxed);
  if (cut == Cut::kHangUp) return;
  aborted_ |= cut == Cut::kShutdown && event.finish_reason == "abort";
  if (stream_) {
    write_stream(request, event, open_ == 0);
  } else {
    write_whole(request, event, open_ == 0);
  }
}

void AnswerStream::write_stream(size_t request, const Event& event, bool last) {
  Deliveries& outbox = shared_.outbox[from_.io_thread];
  std::string& out = outbox.bytes;
  const auto write_events = [&] {
    if (!aborted_) {
      exchange_->on_event(request, event, out);
      if (last) exchange_->end_stream(out);
    } else if (last) {
      out += shutting_down().sse();
      out += kDone;
    }
  };
  size_t begin = out.size();
  if (chunked_) {
    Chunk chunk(out);
    write_events();
    begin = chunk.close();
    if (last) out += "0\r\n\r\n";
  } else {
    write_events();
  }
  if (begin < out.size() || last)
    outbox.items.push_back({.to = from_, .begin = begin, .end = out.size(), .status = 0, .last = last});
}

void AnswerStream::write_whole(size_t request, const Event& event, bool last) {
  Deliveries& outbox = shared_.outbox[from_.io_thread];
  exchange_->on_event(request, event, outbox.bytes);
  if (!last) return;
  const size_t begin = outbox.bytes.size();
  std::optional<openai::ApiError> error = exchange_->error();
  if (aborted_) error = shutting_down();
  outbox.bytes += error ? error->body() : exchange_->body();
  outbox.items.push_back({.to = from_,
                          .begin = begin,
                          .end = outbox.bytes.size(),
                          .status = error ? error->status : 200,
                          .last = true});
}

}  // namespace whippet::serve
