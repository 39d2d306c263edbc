#include "api/streamer.h"

#include <pthread.h>

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
  const std::vector<int32_t> kept_special = params.kept_special_token_ids;
  const bool continues_text = !request.prompt.empty();
  auto stream = std::make_unique<Stream>();
  stream->on_event = std::move(on_event);
  stream->keep_stop_text = params.include_stop_str_in_output;
  // The lock spans both steps: the first event may arrive before submit has returned the id.
  const std::lock_guard lock(mutex_);
  WH_ASSIGN(const uint64_t id, core_.submit(std::move(request)));
  for (int32_t i = 0; i < answers; ++i)
    stream->decoders.emplace_back(*tokenizer_, skip_special, continues_text, kept_special);
  streams_.emplace(id, std::move(stream));
  return id;
}

void Streamer::run() {
  ::pthread_setname_np(::pthread_self(), "whippet-stream");
  std::vector<CoreEvent> batch;
  while (core_.events().take(batch)) {
    find_streams(batch);
    for (size_t i = 0; i < batch.size(); ++i) deliver(*batch_streams_[i], batch[i]);
    {
      const std::lock_guard lock(mutex_);
      for (const CoreEvent& event : batch)
        if (event.last_of_request) streams_.erase(event.request_id);
    }
    if (after_events_ && !batch.empty()) after_events_();
  }
}

// One lock for all events of a step. A stream stays where it is until its last event has been delivered.
void Streamer::find_streams(const std::vector<CoreEvent>& batch) {
  batch_streams_.clear();
  const std::lock_guard lock(mutex_);
  for (const CoreEvent& event : batch) {
    const auto found = streams_.find(event.request_id);
    WH_CHECK(found != streams_.end(), "event of unknown request {}", event.request_id);
    batch_streams_.push_back(found->second.get());
  }
}

void Streamer::deliver(Stream& stream, CoreEvent& event) {
  Event& out = event_;
  out.request_id = event.request_id;
  out.index = event.index;
  out.text = text_of(stream, event);
  out.token_ids.swap(event.token_ids);
  out.logprobs.swap(event.logprobs);
  out.prompt_logprobs.swap(event.prompt_logprobs);
  out.finished = event.finish != FinishReason::kNone;
  out.last = event.last_of_request;
  out.finish_reason = finish_reason_name(event.finish);
  out.stop_reason = !event.stop_string.empty() ? event.stop_string
                    : event.stop_token >= 0    ? std::to_string(event.stop_token)
                                               : "";
  out.error.swap(event.error);
  out.usage = event.usage;
  out.timing = event.timing;
  stream.on_event(out);
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
