// Bodies of requests: whatever comes in, the answer is a request within the context's bounds or an error body
// that is JSON. What was accepted is played to its end.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/check.h"
#include "openai/fake_context.h"

namespace {

using namespace whippet::openai;

void check_error(const ApiError& error) {
  WH_CHECK(error.status == 400 || error.status == 404, "{}", error.status);
  WH_CHECK(!error.message.empty() && nlohmann::json::accept(error.body()), "{}", error.body());
}

void check_events(const std::string& stream) {
  for (size_t at = 0; at < stream.size();) {
    const size_t end = stream.find("\n\n", at);
    WH_CHECK(end != std::string::npos && stream.compare(at, 6, "data: ") == 0);
    const std::string_view event = std::string_view(stream).substr(at + 6, end - at - 6);
    WH_CHECK(event == "[DONE]" || nlohmann::json::accept(event), "{}", event);
    at = end + 2;
  }
}

// One token a request and answer, then its end.
void play(Exchange& exchange) {
  std::string out;
  exchange.begin_stream(out);
  const auto& requests = exchange.requests();
  for (size_t i = 0; i < requests.size(); ++i) {
    const whippet::SamplingParams& params = requests[i].params;
    const size_t prompt = requests[i].prompt_token_ids.size();
    WH_CHECK(prompt > 0 && prompt + static_cast<size_t>(params.max_tokens.value()) <= 512);
    for (int32_t index = 0; index < params.n; ++index) {
      whippet::Event event;
      event.index = index;
      event.text = "a\n";
      event.token_ids = {97, 10};
      if (params.logprobs)
        event.logprobs = {{.token_id = 97, .logprob = -1, .rank = 1, .top = {{195, -2.f}}},
                          {.token_id = 10, .logprob = -1, .rank = 1, .top = {}}};
      if (params.prompt_logprobs && index == 0)
        event.prompt_logprobs.resize(prompt - 1, {.token_id = 65, .logprob = -1, .rank = 1, .top = {}});
      event.finished = true;
      event.last = index + 1 == params.n;
      event.finish_reason = "stop";
      event.stop_reason = params.stop.empty() ? "" : params.stop.front();
      exchange.on_event(i, event, out);
    }
  }
  WH_CHECK(exchange.done() && !exchange.error());
  exchange.end_stream(out);
  if (exchange.stream()) return check_events(out);
  WH_CHECK(nlohmann::json::accept(exchange.body()), "{}", exchange.body());
}

template <class Answer>
void check(whippet::openai::Outcome<Answer> outcome) {
  if (const auto* error = std::get_if<ApiError>(&outcome)) return check_error(*error);
  if constexpr (std::is_same_v<Answer, std::string>) {
    WH_CHECK(nlohmann::json::accept(std::get<0>(outcome)));
  } else {
    play(*std::get<0>(outcome));
  }
}

}  // namespace

// The first byte chooses the route and whether fields are strict; the rest is the body.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Context context = fake_context();
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  context.strict_fields = (data[0] & 4) != 0;
  switch (data[0] & 3) {
    case 0:
      check(parse_chat(context, body, "chatcmpl-1"));
      break;
    case 1:
      check(parse_completion(context, body, "cmpl-1"));
      break;
    case 2:
      check(tokenize(context, body));
      break;
    default:
      check(detokenize(context, body));
  }
  return 0;
}
