// Reads a stream of server-sent events, however the network cuts it. Used by `whippet bench serve`.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace whippet {

class SseReader {
 public:
  using Sink = std::function<void(std::string_view data)>;

  // Gives `sink` the data of each event that `bytes` complete; comments and events without data are none.
  // kResourceExhausted where an event is larger than 16 MiB: nothing more can be read.
  Status feed(std::string_view bytes, const Sink& sink);

 private:
  void end_line(const Sink& sink);

  std::string line_;  // what has come of it
  std::string data_;  // of the event, each line of it with its end
  bool after_cr_ = false;
  bool at_begin_ = true;  // of the stream, where a byte order mark may be
};

}  // namespace whippet
