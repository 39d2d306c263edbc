// The events of an exchange: from pieces of answers to bytes, or to what a whole answer will be made of.
#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "openai/exchange_impl.h"
#include "openai/json_text.h"

namespace whippet::openai {
namespace {

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool has_logprobs_of(const Event& event) { return !event.logprobs.empty() || !event.prompt_logprobs.empty(); }

// The stop string in quotes, the number of a stop token, or null. An event says either as text: it was the
// token where the number is that of the answer's last token.
std::string stop_reason_json(const Event& event, const SamplingParams& params) {
  if (event.stop_reason.empty()) return "null";
  if (!event.token_ids.empty() && event.stop_reason == std::to_string(event.token_ids.back()))
    for (const int32_t id : params.stop_token_ids)
      if (id == event.token_ids.back()) return event.stop_reason;
  std::string json;
  append_json_string(json, event.stop_reason);
  return json;
}

// A token that ends the answers of this format, and that the request did not ask for.
bool is_own_stop(const Event& event, const Exchange::Impl& impl) {
  const auto& asked = impl.fields.params.stop_token_ids;
  return impl.format.end_token >= 0 && !event.token_ids.empty() &&
         event.token_ids.back() == impl.format.end_token &&
         event.stop_reason == std::to_string(impl.format.end_token) &&
         std::find(asked.begin(), asked.end(), impl.format.end_token) == asked.end();
}

}  // namespace

Exchange::Impl::Impl(const Context& the_context, Route the_route, std::string the_id,
                     RequestFields the_fields)
    : context(the_context),
      route(the_route),
      id(std::move(the_id)),
      fields(std::move(the_fields)),
      created(seconds_now()),
      names{&the_context, fields.tokens_as_ids} {
  if (fields.stream)
    chunk_opening =
        "data: " + opening(is_chat() ? "chat.completion.chunk" : "text_completion") + "\"choices\":[";
}

void Exchange::Impl::add_prompt(std::vector<int32_t> prompt, std::string echo, SamplingParams params) {
  AskedPrompt& asked = prompts.emplace_back();
  asked.num_tokens = static_cast<int32_t>(prompt.size());
  asked.echo = std::move(echo);
  if (fields.return_token_ids || (!is_chat() && fields.echo && has_logprobs)) asked.ids = prompt;
  answers.resize(prompts.size() * answers_each());
  Request& request = requests.emplace_back();
  request.prompt_token_ids = std::move(prompt);
  request.params = std::move(params);
  request.priority = fields.priority;
  request.timeout_s = fields.timeout_s;
  request.cache_salt = fields.cache_salt;
}

std::optional<ApiError> Exchange::Impl::failure_of(const Event& event) const {
  if (!event.finished || event.finish_reason == "stop" || event.finish_reason == "length")
    return std::nullopt;
  if (event.finish_reason == "timeout")
    return http_error(
        504,
        fmt::format("the answer took longer than the request's deadline of {} seconds", fields.timeout_s),
        "timeout");
  if (event.finish_reason == "abort")
    return http_error(503, "the request was cancelled before its answer was complete", "request_cancelled");
  return http_error(500, event.error.empty() ? "the engine could not answer" : event.error, "internal_error");
}

void Exchange::Impl::add_text(Answer& answer, const Event& event) const {
  if (!format.has_parts()) {
    answer.text += event.text;
    return;
  }
  if (!answer.parser) answer.parser.emplace(format);
  answer.parser->push(event.text, event.token_ids, event.finished, answer.parts);
  answer.text += answer.parts.content;
  answer.parts.content.clear();
}

void Exchange::Impl::follow(size_t request, const Event& event) {
  AskedPrompt& prompt = prompts[request];
  Answer& answer = answers[request * answers_each() + static_cast<size_t>(event.index)];
  if (!event.prompt_logprobs.empty()) prompt.logprobs = event.prompt_logprobs;
  if (!answer.started) {
    answer.started = true;
    if (!is_chat() && fields.echo) {
      answer.text = prompt.echo;
      if (has_logprobs) answer.logprobs.add_prompt(names, prompt.ids, prompt.logprobs, prompt.echo);
    } else if (!fields.stream) {
      answer.text = prompt.echo;  // of a chat; a stream has it in the chunk of the role
    }
  }
  if (!prompt_only) {
    add_text(answer, event);
    answer.tokens += static_cast<int32_t>(event.token_ids.size());
    if (fields.return_token_ids)
      answer.ids.insert(answer.ids.end(), event.token_ids.begin(), event.token_ids.end());
    if (has_logprobs && is_chat()) append_chat_logprobs(answer.chat_logprobs, names, event.logprobs);
    if (has_logprobs && !is_chat())
      answer.logprobs.add(names, event.logprobs, fields.params.skip_special_tokens);
  }
  if (!event.finished) return;
  const bool has_calls = event.finish_reason == "stop" && answer.num_calls() > 0;
  answer.finish_reason = prompt_only ? "length" : has_calls ? "tool_calls" : event.finish_reason;
  answer.stop_reason =
      prompt_only || is_own_stop(event, *this) ? "null" : stop_reason_json(event, fields.params);
  if (!prompt_only) answer.tokens = event.usage.completion_tokens;
  if (event.index == 0 || !prompt.cached_tokens) prompt.cached_tokens = event.usage.cached_tokens;
}

Usage Exchange::Impl::usage() const {
  Usage usage;
  for (const AskedPrompt& prompt : prompts) {
    usage.prompt_tokens += prompt.num_tokens;
    usage.cached_tokens += prompt.cached_tokens.value_or(0);
  }
  for (const Answer& answer : answers) usage.completion_tokens += answer.tokens;
  return usage;
}

Exchange::Exchange(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Exchange::~Exchange() = default;

std::vector<Request>& Exchange::requests() { return impl_->requests; }
bool Exchange::stream() const { return impl_->fields.stream; }
const std::string& Exchange::model() const { return impl_->fields.model; }
const std::vector<std::string>& Exchange::ignored_fields() const { return impl_->fields.ignored; }
Usage Exchange::usage() const { return impl_->usage(); }
std::optional<ApiError> Exchange::error() const { return impl_->failure; }
bool Exchange::done() const { return impl_->ended == impl_->prompts.size(); }

void Exchange::begin_stream(std::string& out) {
  if (!impl_->is_chat()) return;
  for (size_t choice = 0; choice < impl_->answers.size(); ++choice) impl_->append_role_chunk(choice, out);
}

void Exchange::on_event(size_t request_index, const Event& event, std::string& out) {
  Impl& impl = *impl_;
  WH_CHECK(request_index < impl.prompts.size() && event.index >= 0 &&
           static_cast<size_t>(event.index) < impl.answers_each());
  if (event.last) ++impl.ended;
  if (impl.failure) return;
  if (std::optional<ApiError> failure = impl.failure_of(event)) {
    if (impl.fields.stream) out += failure->sse();
    impl.failure = std::move(failure);
    return;
  }
  const size_t choice = request_index * impl.answers_each() + static_cast<size_t>(event.index);
  impl.follow(request_index, event);
  if (!impl.fields.stream) return;
  Answer& answer = impl.answers[choice];
  const bool says_something = !answer.text.empty() || !answer.parts.reasoning.empty() ||
                              !answer.parts.calls.empty() || event.finished || !answer.ids.empty() ||
                              (impl.has_logprobs && has_logprobs_of(event));
  if (!says_something) return;
  impl.append_chunk(choice, out);
  answer.text.clear();
  answer.calls_before = answer.num_calls();
  answer.parts = {};
  answer.ids.clear();
  answer.chat_logprobs.clear();
  answer.logprobs.clear();
}

void Exchange::end_stream(std::string& out) {
  if (impl_->fields.include_usage && !impl_->failure) {
    out += impl_->chunk_opening;
    out += ']';
    impl_->append_usage(out);
    out += "}\n\n";
  }
  out += "data: [DONE]\n\n";
}

std::string Exchange::body() const {
  std::string out;
  impl_->append_whole(out);
  return out;
}

}  // namespace whippet::openai
