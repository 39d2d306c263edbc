#include "api/request_output.h"

namespace whippet {

void append_event(const Event& event, RequestOutput& output) {
  const auto index = static_cast<size_t>(event.index);
  if (output.outputs.size() <= index) output.outputs.resize(index + 1);
  Completion& answer = output.outputs[index];
  answer.index = event.index;
  answer.text += event.text;
  answer.token_ids.insert(answer.token_ids.end(), event.token_ids.begin(), event.token_ids.end());
  answer.logprobs.insert(answer.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
  if (!event.prompt_logprobs.empty()) output.prompt_logprobs = event.prompt_logprobs;
  if (!event.finished) return;
  answer.finish_reason = event.finish_reason;
  answer.stop_reason = event.stop_reason;
  output.usage.prompt_tokens = event.usage.prompt_tokens;
  output.usage.cached_tokens = event.usage.cached_tokens;
  output.usage.completion_tokens += event.usage.completion_tokens;
  output.timing = event.timing;
  if (!event.error.empty()) output.error = event.error;
}

}  // namespace whippet
