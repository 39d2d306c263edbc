#include "api/streamer.h"

#include <string>
#include <utility>

namespace whippet {

Streamer::Streamer(EngineCore& core, const Tokenizer* tokenizer)
    : core_(core), tokenizer_(tokenizer), thread_([this] { run(); }) {}

Streamer::~Streamer() { thread_.join(); }

Result<uint64_t> Streamer::submit(CoreRequest request, EventCallback on_event) {
  const SamplingParams& params = request.params;
  const int32_t answers = tokenizer_ == nullptr ? 0 : params.n;
  const bool skip_special = params.skip_special_tokens;
  const bool continues_text = !request.prompt.empty();
  auto stream = std::make_unique<Stream>();
  stream->on_event = std::move(on_event);
  stream->keep_stop_text = params.include_stop_str_in_output;
  // The lock spans both steps: the first event may arrive before submit has returned the id.
  const std::lock_guard lock(mutex_);
  WH_ASSIGN(const uint64_t id, core_.submit(std::move(request)));
  for (int32_t i = 0; i < answers; ++i)
    stream->decoders.emplace_back(*tokenizer_, skip_special, continues_text);
  streams_.emplace(id, std::move(stream));
  return id;
}

void Streamer::run() {
  std::vector<CoreEvent> batch;
  while (core_.events().take(batch))
    for (CoreEvent& event : batch) deliver(event);
}

void Streamer::deliver(CoreEvent& event) {
  Stream* stream = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(event.request_id);
    WH_CHECK(found != streams_.end(), "event of unknown request {}", event.request_id);
    stream = found->second.get();
  }
  Event out;
  out.request_id = event.request_id;
  out.index = event.index;
  out.text = text_of(*stream, event);
  out.token_ids = std::move(event.token_ids);
  out.logprobs = std::move(event.logprobs);
  out.prompt_logprobs = std::move(event.prompt_logprobs);
  out.finished = event.finish != FinishReason::kNone;
  out.last = event.last_of_request;
  out.finish_reason = finish_reason_name(event.finish);
  out.stop_reason = !event.stop_string.empty() ? event.stop_string
                    : event.stop_token >= 0    ? std::to_string(event.stop_token)
                                               : "";
  out.error = std::move(event.error);
  out.usage = event.usage;
  out.timing = event.timing;
  stream->on_event(out);
  if (!event.last_of_request) return;
  const std::lock_guard lock(mutex_);
  streams_.erase(event.request_id);
}

// The token that ended an answer (EOS or a stop token) is among its ids and not in its text.
std::string Streamer::text_of(Stream& stream, const CoreEvent& event) {
  if (event.has_text) return event.text;
  if (stream.decoders.empty()) return "";
  StreamDecoder& decoder = stream.decoders[static_cast<size_t>(event.index)];
  size_t count = event.token_ids.size();
  if (event.finish == FinishReason::kStop && !stream.keep_stop_text && count > 0) --count;
  std::string text;
  for (size_t i = 0; i < count; ++i) text += decoder.push(event.token_ids[i]);
  if (event.finish != FinishReason::kNone) text += decoder.finish();
  return text;
}

}  // namespace whippet
