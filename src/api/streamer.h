// From the engine's events (ids) to the public ones (text): the streamer thread, which decodes and calls the
// callbacks. Owned by the public Engine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/engine_core.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "whippet/request.h"

namespace whippet {

using EventCallback = std::function<void(const Event&)>;

class Streamer {
 public:
  // Both must outlive the streamer; tokenizer may be nullptr (events have no text then).
  Streamer(EngineCore& core, const Tokenizer* tokenizer);
  // Joins the thread: core.stop() must have been called.
  ~Streamer();

  // Any thread. Hands the request to the engine; from then on its events come on the streamer thread.
  Result<uint64_t> submit(CoreRequest request, EventCallback on_event);

  // Before the first submit: what runs on the streamer thread after each group of events.
  void set_after_events(std::function<void()> after_events) { after_events_ = std::move(after_events); }

 private:
  struct Stream {
    EventCallback on_event;
    bool keep_stop_text = false;          // include_stop_str_in_output
    std::vector<StreamDecoder> decoders;  // [n], empty without a tokenizer
  };

  void run();
  void find_streams(const std::vector<CoreEvent>& batch);
  void deliver(Stream& stream, CoreEvent& event);
  std::string text_of(Stream& stream, const CoreEvent& event);

  EngineCore& core_;
  const Tokenizer* tokenizer_;
  std::mutex mutex_;  // guards the table; the streams inside belong to the streamer thread once submitted
  std::unordered_map<uint64_t, std::unique_ptr<Stream>> streams_;
  std::function<void()> after_events_;
  // Of the group that is being delivered; the streamer thread's own.
  std::vector<Stream*> batch_streams_;  // [events]
  Event event_;
  std::thread thread_;
};

}  // namespace whippet
