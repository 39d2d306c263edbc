// What one request of `whippet bench serve` was answered, and when: read from the bytes of a streamed answer
// of OpenAI's API. Knows no network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench_sse.h"

namespace whippet {

// Times are in seconds since the request was sent.
struct BenchAnswer {
  double first_token = 0;    // when the first text came
  double last_token = 0;     // and the last
  double end = 0;            // the whole answer
  std::vector<double> gaps;  // between pieces of text that follow each other
  int32_t prompt_tokens = 0;
  int32_t output_tokens = 0;  // as the server counts them, else the pieces of text
  std::string error;          // its kind: "HTTP 429", "timeout", ...; empty: a complete answer
  std::string detail;         // what was said about it
};

class BenchAnswerReader {
 public:
  // `status` is HTTP's, `now` seconds since the request was sent.
  void take(int status, std::string_view bytes, double now);
  // The answer has ended: with `error`, where it is not empty.
  BenchAnswer finish(int status, double now, std::string error = "", std::string detail = "");

 private:
  void take_event(std::string_view data, double now);

  BenchAnswer answer_;
  SseReader events_;
  std::string refusal_;  // body of an answer that is no 200
  int32_t pieces_ = 0;
  bool has_usage_ = false;
  bool done_ = false;
};

}  // namespace whippet
