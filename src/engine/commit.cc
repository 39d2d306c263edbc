// The second half of EngineLoop: a step's result becomes tokens of sequences, ends and events.
#include <algorithm>
#include <utility>

#include "engine/engine_loop.h"

namespace whippet {
namespace {

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

TokenLogprob logprob_at(const StepOutput& out, int32_t logit, int32_t num_top) {
  const auto at = static_cast<size_t>(logit);
  TokenLogprob result{
      .token_id = out.tokens[at], .logprob = out.logprobs[at], .rank = out.ranks[at], .top = {}};
  for (int32_t i = 0; i < num_top; ++i) {
    const size_t entry = at * kMaxLogprobs + static_cast<size_t>(i);
    if (out.top_ids[entry] >= 0) result.top.emplace_back(out.top_ids[entry], out.top_logprobs[entry]);
  }
  return result;
}

}  // namespace

void EngineLoop::commit(const Launched& step) {
  const StepOutput out = runner_.wait(step.ticket);
  const Clock::time_point now = now_();
  drawn_tokens_ = prompt_tokens_ = 0;
  for (const PlannedRows& rows : step.plan->rows) commit_rows(rows, out, now);
  if (counting_) count_step(step, now);
}

void EngineLoop::commit_rows(const PlannedRows& rows, const StepOutput& out, Clock::time_point now) {
  Sequence& sequence = *rows.sequence;
  ActiveRequest& request = *sequence.request;
  const bool finished = sequence.state == SequenceState::kFinished;
  const int32_t logit = rows.first_logit + rows.num_logits - 1;
  const int32_t token = rows.draws && !finished ? out.tokens[static_cast<size_t>(logit)] : -1;
  if (rows.draws) --sequence.num_pending;
  if (rows.draws && !finished && token < 0) {
    finish(sequence, FinishReason::kError, now,
           "no token could be drawn: the model's logits are not finite, or every token is banned");
  }
  scheduler_.commit(rows);
  if (sequence.state != SequenceState::kFinished) {
    if (rows.num_logits > (rows.draws ? 1 : 0)) add_prompt_logprobs(rows, out);
    if (rows.draws) {
      if (const auto& logprobs = request.asked.params.logprobs)
        sequence.held_logprobs.push_back(logprob_at(out, logit, *logprobs));
      accept(sequence, token, now);
      accept_forced(sequence, now);
    }
  }
  forget_if_done(request);
}

void EngineLoop::add_prompt_logprobs(const PlannedRows& rows, const StepOutput& out) {
  Sequence& sequence = *rows.sequence;
  const int32_t forced = rows.num_logits - (rows.draws ? 1 : 0);
  for (int32_t i = 0; i < forced; ++i) {
    sequence.prompt_logprobs.push_back(
        logprob_at(out, rows.first_logit + i, sequence.request->asked.params.prompt_logprobs.value_or(0)));
  }
}

// What has been found behind the token just accepted; without overlap it is looked for now, so that it needs
// no step of its own.
void EngineLoop::accept_forced(Sequence& sequence, Clock::time_point now) {
  const bool goes_on = sequence.state != SequenceState::kFinished;
  if (goes_on && !limits_.overlap && sequence.forced.empty() && sequence.request->asked.token_mask)
    look_ahead(sequence);
  for (const int32_t token : sequence.forced) {
    if (sequence.state != SequenceState::kFinished) accept(sequence, token, now);
  }
  sequence.forced.clear();
}

void EngineLoop::accept(Sequence& sequence, int32_t token, Clock::time_point now) {
  ActiveRequest& request = *sequence.request;
  const SamplingParams& params = request.asked.params;
  ++drawn_tokens_;
  if (sequence.num_output() == 0) {
    sequence.first_token_time = now;
    if (sequence.index == 0) {
      prompt_tokens_ += sequence.num_prompt;
      wake_siblings(request);
      if (counting_) metrics_.add_first_token(seconds_between(request.submitted, now));
    }
  } else if (counting_) {
    metrics_.add_inter_token(seconds_between(sequence.last_token_time, now));
  }
  sequence.last_token_time = now;
  sequence.tokens.push_back(token);
  sequence.sampler.accept(token);

  const bool may_stop = sequence.num_output() >= params.min_tokens || sequence.sampler.must_end();
  const bool eos = !params.ignore_eos && std::ranges::find(facts_.eos_ids, token) != facts_.eos_ids.end();
  const bool stop_token = !eos && std::ranges::binary_search(request.stop_ids, token);
  if (may_stop && (eos || stop_token)) {
    if (stop_token) sequence.stop_token = token;
    if (sequence.stops) sequence.stops->push_end(token);
    return finish(sequence, FinishReason::kStop, now);
  }
  if (sequence.stops && sequence.stops->push(token, may_stop))
    return finish(sequence, FinishReason::kStop, now);
  const bool full = static_cast<int32_t>(sequence.tokens.size()) == sequence.max_length;
  if (full) return finish(sequence, FinishReason::kLength, now);
  report(sequence, FinishReason::kNone, now);
}

void EngineLoop::finish(Sequence& sequence, FinishReason reason, Clock::time_point now, std::string error) {
  ActiveRequest& request = *sequence.request;
  --request.num_unfinished;
  if (sequence.stops) sequence.stops->finish();
  report(sequence, reason, now);
  events_.back().error = std::move(error);
  scheduler_.finish(sequence);
  if (reason == FinishReason::kError || reason == FinishReason::kStop || reason == FinishReason::kLength) {
    wake_siblings(request);  // where the first answer failed before its first token
  }
}

// Adds an event with whatever may go out now.
void EngineLoop::report(Sequence& sequence, FinishReason finish, Clock::time_point now) {
  const int32_t first = sequence.num_prompt + sequence.num_reported;
  int32_t count = static_cast<int32_t>(sequence.tokens.size()) - first;
  std::string text;
  if (sequence.stops) {
    text = sequence.stops->take_text();
    count = sequence.stops->take_released_tokens();
    if (count == 0 && text.empty() && finish == FinishReason::kNone) return;
  }
  const ActiveRequest& request = *sequence.request;
  CoreEvent& event = events_.emplace_back();
  event.request_id = request.id;
  event.index = sequence.index;
  event.finish = finish;
  event.has_text = sequence.stops.has_value();
  event.text = std::move(text);
  event.token_ids.assign(sequence.tokens.begin() + first, sequence.tokens.begin() + first + count);
  sequence.num_reported += count;
  if (!sequence.held_logprobs.empty()) {
    const auto end = sequence.held_logprobs.begin() + count;
    event.logprobs.assign(std::make_move_iterator(sequence.held_logprobs.begin()),
                          std::make_move_iterator(end));
    sequence.held_logprobs.erase(sequence.held_logprobs.begin(), end);
  }
  event.prompt_logprobs = std::move(sequence.prompt_logprobs);
  if (finish == FinishReason::kNone) return;

  event.last_of_request = request.num_unfinished == 0;
  event.stop_token = sequence.stop_token;
  if (sequence.stops) event.stop_string = sequence.stops->matched();
  event.usage = {.prompt_tokens = sequence.num_prompt,
                 .completion_tokens = sequence.num_output(),
                 .cached_tokens = request.num_cached};
  event.timing.queued = seconds_between(request.submitted, request.first_planned.value_or(now));
  if (sequence.num_output() > 0) {
    event.timing.first_token = seconds_between(request.submitted, sequence.first_token_time);
  }
  event.timing.finished = seconds_between(request.submitted, now);
  if (counting_) metrics_.add_finished(finish, event.usage, event.timing);
}

void EngineLoop::count_step(const Launched& step, Clock::time_point now) {
  int32_t decode_tokens = 0;
  for (const PlannedRows& rows : step.plan->rows) decode_tokens += rows.count == 1 && rows.draws;
  metrics_.add_step({.prefill_tokens = step.plan->num_tokens - decode_tokens,
                     .decode_tokens = decode_tokens,
                     .drawn_tokens = drawn_tokens_,
                     .prompt_tokens = prompt_tokens_,
                     .seconds = seconds_between(step.planned, now)},
                    now);
}

}  // namespace whippet
