// What the codec costs on the path of a token, and a request: `codec_bench`. No pass or fail.
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "openai/fake_context.h"

namespace whippet::openai {
namespace {

using Clock = std::chrono::steady_clock;

double nanoseconds_each(int64_t count, Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / static_cast<double>(count);
}

std::unique_ptr<Exchange> open_stream(const Context& context, const nlohmann::json& more) {
  nlohmann::json body = {{"model", "tiny"},
                         {"stream", true},
                         {"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                         {"prompt", "Hi"}};
  if (!more.is_null()) body.update(more);
  auto parsed = body.contains("route")
                    ? parse_completion(context, body.dump(), "cmpl-0123456789abcdef0123456789abcdef")
                    : parse_chat(context, body.dump(), "chatcmpl-0123456789abcdef0123456789abcdef");
  return std::get<0>(std::move(parsed));
}

// Events of one stream, as a streamer meets them: one token each, into a string that is sent and reused.
void measure_events(const char* what, const Context& context, const nlohmann::json& more, Event event) {
  constexpr int64_t kEvents = 2'000'000;
  const auto exchange = open_stream(context, more);
  std::string out;
  const auto begin = Clock::now();
  size_t bytes = 0;
  for (int64_t i = 0; i < kEvents; ++i) {
    out.clear();
    exchange->on_event(0, event, out);
    bytes += out.size();
  }
  std::printf("%-40s %8.0f ns an event, %zu bytes\n", what, nanoseconds_each(kEvents, begin),
              bytes / kEvents);
}

void measure_requests(const char* what, const Context& context, size_t content) {
  constexpr int64_t kRequests = 20'000;
  const nlohmann::json body = {{"model", "tiny"},
                               {"stream", true},
                               {"temperature", 0.7},
                               {"max_tokens", 64},
                               {"messages",
                                {{{"role", "system"}, {"content", "Be brief."}},
                                 {{"role", "user"}, {"content", std::string(content, 'x')}}}}};
  const std::string text = body.dump();
  const auto begin = Clock::now();
  size_t taken = 0;
  for (int64_t i = 0; i < kRequests; ++i) taken += parse_chat(context, text, "id").index() == 0;
  std::printf("%-40s %8.0f ns a request (%zu taken)\n", what, nanoseconds_each(kRequests, begin), taken);
}

void run() {
  const Context context = fake_context();
  Event word;
  word.text = " world";
  word.token_ids = {1917};
  Event quoted = word;
  quoted.text = "\"\n\\";
  Event chinese = word;
  chinese.text = "你好，世界";
  measure_events("chat, a word", context, {}, word);
  measure_events("chat, characters that are escaped", context, {}, quoted);
  measure_events("chat, Chinese", context, {}, chinese);
  measure_events("completion, a word", context, {{"route", 1}}, word);
  measure_events("chat, usage in every chunk", context,
                 {{"stream_options", {{"continuous_usage_stats", true}}}}, word);
  Event likely = word;
  likely.logprobs = {
      {.token_id = 65, .logprob = -0.5f, .rank = 1, .top = {{65, -0.5f}, {66, -1.5f}, {67, -2.5f}}}};
  measure_events("chat, three logprobs", context, {{"logprobs", true}, {"top_logprobs", 3}}, likely);
  measure_requests("a chat of 100 bytes", context, 100);
}

}  // namespace
}  // namespace whippet::openai

int main() { whippet::openai::run(); }
