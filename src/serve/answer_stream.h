// One request between the codec, the engine and its connection: submits it, writes its events into the outbox
// of the I/O thread, and cancels it. Shared by the connection and the engine's callbacks: whoever lets go
// last gives its place back.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "openai/api.h"
#include "serve/deliveries.h"
#include "serve/gate.h"

namespace whippet::serve {

struct Shared;
struct Service;

class AnswerStream : public std::enable_shared_from_this<AnswerStream> {
 public:
  enum class Kind : uint8_t { kChat, kCompletion };
  enum class Cut : uint8_t { kNone, kHangUp, kShutdown };
  struct Asked {
    Kind kind = Kind::kChat;
    std::string body;
    std::string request_id;
    Address from;
    bool chunked = true;  // how a stream is framed
  };

  // Reads the request, takes its places and submits it. On a thread that may take its time.
  static std::variant<std::shared_ptr<AnswerStream>, openai::ApiError> start(Shared& shared,
                                                                             const Service& service,
                                                                             Asked asked);

  AnswerStream(Shared& shared, const Service& service, std::unique_ptr<openai::Exchange> exchange,
               Asked asked, Gate::Ticket ticket);

  bool stream() const { return stream_; }
  // Of a stream, what stands before its first event, framed; moved out by the connection.
  std::string take_opening() { return std::move(opening_); }
  const std::string& ignored_fields() const { return ignored_fields_; }

  // Cancels it in the engine. kHangUp: nothing more is written; kShutdown: it ends with an error. By whoever
  // has it from start().
  void cut(Cut why);

 private:
  std::optional<openai::ApiError> submit();
  void on_event(size_t request, const Event& event);  // streamer thread
  void write_stream(size_t request, const Event& event, bool last);
  void write_whole(size_t request, const Event& event, bool last);

  Shared& shared_;
  const Service& service_;
  std::unique_ptr<openai::Exchange> exchange_;  // the submitter's until submitted, then the streamer thread's
  const Address from_;
  const bool chunked_;
  const bool stream_;
  Gate::Ticket ticket_;
  std::string opening_;
  std::string ignored_fields_;
  int32_t open_ = 0;      // requests whose last event has not come; the streamer thread's once submitted
  bool aborted_ = false;  // by kShutdown, before it was complete; the streamer thread's
  std::atomic<Cut> cut_ = Cut::kNone;
  std::vector<uint64_t> ids_;  // the engine's; the submitter's, then the I/O thread's
};

}  // namespace whippet::serve
