// Looks after the engine and the end of the server, some times a second on the first I/O thread: a step that
// never ends, when a place may be free, the statistics line, the drain.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "serve/shared.h"
#include "whippet/whippet.h"

namespace whippet::serve {

class Watch {
 public:
  // abort: ends every open answer with an error. done: the server may stop; whole: every answer was sent.
  Watch(Shared& shared, std::function<void()> abort, std::function<void(bool whole)> done);

  void look(Clock::time_point now);

 private:
  void look_at_engine(Clock::time_point now);
  void look_at_drain(Clock::time_point now);

  Shared& shared_;
  std::function<void()> abort_;
  std::function<void(bool)> done_;
  Clock::time_point last_progress_, last_second_, last_line_;
  uint64_t steps_ = 0, left_ = 0;
  double leaving_ = 1;  // requests a second, smoothed
  EngineCounts line_;   // of the last statistics line
  bool draining_ = false, aborted_ = false, done_called_ = false;
  Clock::time_point drain_began_, abort_began_;
};

// "12 running, 3 waiting; tokens/s: 1234 out, 55 in; KV cache 12 %, ..." of what happened in `seconds`.
std::string statistics_line(const EngineCounts& before, const EngineCounts& now, double seconds);

}  // namespace whippet::serve
