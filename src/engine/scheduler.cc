#include "engine/scheduler.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/math.h"

namespace whippet {
namespace {

bool more_urgent(const Sequence* a, const Sequence* b) {
  return std::tuple(a->urgency, a->request_id, a->index) < std::tuple(b->urgency, b->request_id, b->index);
}

// Only draws: every token but the last is in the cache (or will be).
bool only_draws(const Sequence& sequence) { return sequence.length() - sequence.num_planned == 1; }

// A pending token may turn out to be the last: at max_length there is nothing to run any more. What is forced
// behind a pending token runs together with it, once that is known.
bool runnable(const Sequence& sequence) {
  return !sequence.draining && sequence.forced.empty() && sequence.length() < sequence.max_length;
}

}  // namespace

Scheduler::Scheduler(const CoreLimits& limits, BlockManager& blocks) : limits_(limits), blocks_(blocks) {
  running_.reserve(static_cast<size_t>(limits.max_num_seqs));
}

void Scheduler::add(Sequence& sequence, Clock::time_point now) {
  if (!sequence.started && num_fresh_++ == 0 && !window_open_) window_begin_ = now;
  if (sequence.state == SequenceState::kHeld) {
    ++num_held_;
  } else {
    insert_waiting(sequence);
  }
}

void Scheduler::wake(Sequence& sequence) {
  WH_CHECK(sequence.state == SequenceState::kHeld);
  --num_held_;
  sequence.state = SequenceState::kWaiting;
  insert_waiting(sequence);
}

void Scheduler::insert_waiting(Sequence& sequence) {
  refused_with_free_ = -1;
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), &sequence, more_urgent), &sequence);
}

void Scheduler::insert_running(Sequence& sequence) {
  running_.insert(std::upper_bound(running_.begin(), running_.end(), &sequence, more_urgent), &sequence);
}

void Scheduler::schedule(Plan& plan, Clock::time_point now) {
  plan.clear();
  preempted_ = false;
  preempt_drained();
  Budget budget{.tokens = limits_.max_num_batched_tokens,
                .reserved = 0,
                .extra_logits = limits_.max_num_logits - limits_.max_num_seqs};
  for (const Sequence* sequence : running_) budget.reserved += runnable(*sequence) && only_draws(*sequence);
  plan_running(plan, budget);
  admit(plan, budget, now);
}

void Scheduler::preempt_drained() {
  for (size_t i = running_.size(); num_draining_ > 0 && i-- > 0;) {
    Sequence& sequence = *running_[i];
    if (!sequence.draining || sequence.in_flight > 0) continue;
    running_.erase(running_.begin() + static_cast<int64_t>(i));
    preempt(sequence);
  }
}

// Takes the blocks of a sequence that has left running_.
void Scheduler::preempt(Sequence& sequence) {
  WH_CHECK(sequence.in_flight == 0 && sequence.num_pending == 0);
  num_draining_ -= sequence.draining;
  sequence.draining = false;
  if (sequence.num_output() == 0) sequence.prompt_logprobs.clear();
  blocks_.release(sequence);
  sequence.state = SequenceState::kWaiting;
  insert_waiting(sequence);
  ++num_preemptions_;
}

void Scheduler::plan_running(Plan& plan, Budget& budget) {
  for (size_t i = 0; i < running_.size(); ++i) {  // make_room may shorten running_ from its end
    Sequence& sequence = *running_[i];
    if (!runnable(sequence)) continue;
    if (only_draws(sequence)) --budget.reserved;
    const int32_t count = chunk(sequence, budget, plan.empty());
    if (count == 0) continue;
    if (make_room(sequence, sequence.num_planned + count, budget)) plan_rows(sequence, count, plan, budget);
  }
}

int32_t Scheduler::chunk(const Sequence& sequence, const Budget& budget, bool alone) const {
  const int32_t wanted = sequence.length() - sequence.num_planned;
  int32_t count = std::min(wanted, budget.tokens - budget.reserved);
  if (sequence.wants_prompt_logprobs()) {
    // Every row wants logits, and only the last one of the prompt is paid for by its draw.
    const bool whole = count == wanted && count <= budget.extra_logits + 1;
    return std::max(whole ? count : std::min(count, budget.extra_logits), 0);
  }
  if (count < wanted && !limits_.enable_chunked_prefill && !alone) return 0;
  return std::max(count, 0);
}

// True when the sequence has blocks for [0, length), after preempting less urgent ones where needed. Where
// the least urgent is the sequence itself, it is preempted. A victim of a step in flight only drains for now.
bool Scheduler::make_room(Sequence& sequence, int32_t length, Budget& budget) {
  while (!blocks_.grow(sequence, length)) {
    Sequence& victim = *running_.back();
    if (victim.in_flight > 0) {
      if (victim.draining) return false;
      if (&victim != &sequence && runnable(victim) && only_draws(victim)) --budget.reserved;
      victim.draining = true;
      ++num_draining_;
      return false;
    }
    running_.pop_back();
    if (&victim != &sequence && runnable(victim) && only_draws(victim)) --budget.reserved;
    preempt(victim);
    preempted_ = true;
    if (&victim == &sequence) return false;
  }
  return true;
}

void Scheduler::plan_rows(Sequence& sequence, int32_t count, Plan& plan, Budget& budget) {
  PlannedRows rows{.sequence = &sequence, .begin = sequence.num_planned, .count = count};
  rows.first_logit = plan.num_logits;
  rows.draws = rows.begin + count == sequence.length();
  rows.num_logits = sequence.wants_prompt_logprobs() ? count : (rows.draws ? 1 : 0);
  if (sequence.num_pending > 0) rows.input_source = sequence.pending_logit;
  plan.rows.push_back(rows);
  plan.num_tokens += count;
  plan.num_logits += rows.num_logits;
  budget.tokens -= count;
  budget.extra_logits -= rows.num_logits - (rows.draws ? 1 : 0);

  sequence.num_planned += count;
  ++sequence.in_flight;
  ++sequence.request->in_flight;
  if (rows.draws) {
    ++sequence.num_pending;
    sequence.pending_logit = rows.first_logit + rows.num_logits - 1;
  }
}

void Scheduler::admit(Plan& plan, Budget& budget, Clock::time_point now) {
  // After a preemption the blocks are spoken for: admitting now would bring the same shortage back.
  while (!waiting_.empty() && !preempted_ && num_draining_ == 0 && num_running() < limits_.max_num_seqs) {
    Sequence& sequence = *waiting_.front();
    if (!sequence.started && !window_open(now)) return;
    if (!try_admit(sequence, plan, budget)) return;
    if (!sequence.started && --num_fresh_ == 0) window_open_ = false;
    sequence.started = true;
  }
}

bool Scheduler::try_admit(Sequence& sequence, Plan& plan, Budget& budget) {
  if (budget.tokens - budget.reserved <= 0) return false;
  const bool alone = running_.empty();
  if (!alone && blocks_.num_free() <= refused_with_free_) return false;
  const int32_t cached = blocks_.take_cached(sequence);
  const int32_t count = chunk(sequence, budget, plan.empty());
  // Room for the whole of it (or for what a window keeps), and beside others for one block of growth each.
  const int32_t most = peak_blocks(limits_, sequence.length()) - BlockManager::num_held(sequence);
  const int32_t needed =
      std::min(blocks_.missing(sequence, sequence.length()), most) + (alone ? 0 : num_running());
  if (count == 0 || needed > blocks_.num_free() || !blocks_.grow(sequence, sequence.num_planned + count)) {
    if (count > 0) refused_with_free_ = blocks_.num_free();
    blocks_.release(sequence);
    return false;
  }
  waiting_.pop_front();
  refused_with_free_ = -1;
  if (!sequence.started && sequence.index == 0) sequence.request->num_cached = cached;
  sequence.state = SequenceState::kRunning;
  insert_running(sequence);
  plan_rows(sequence, count, plan, budget);
  return true;
}

bool Scheduler::window_open(Clock::time_point now) {
  if (window_open_ || limits_.batch_wait_ms <= 0) return true;
  const int32_t enough = limits_.batch_wait_size > 0 ? limits_.batch_wait_size : limits_.max_num_seqs;
  window_open_ = num_fresh_ >= enough || now >= *window_end();
  return window_open_;
}

std::optional<Clock::time_point> Scheduler::window_end() const {
  if (num_fresh_ == 0 || window_open_ || limits_.batch_wait_ms <= 0) return std::nullopt;
  return window_begin_ + std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double, std::milli>(limits_.batch_wait_ms));
}

void Scheduler::commit(const PlannedRows& rows) {
  Sequence& sequence = *rows.sequence;
  --sequence.in_flight;
  --sequence.request->in_flight;
  if (sequence.state == SequenceState::kFinished) {
    if (sequence.in_flight == 0) blocks_.close(sequence);
    return;
  }
  sequence.num_committed = rows.begin + rows.count;
  blocks_.commit(sequence);
}

void Scheduler::finish(Sequence& sequence) {
  WH_CHECK(sequence.state != SequenceState::kFinished);
  if (sequence.state == SequenceState::kRunning) {
    const auto at = std::lower_bound(running_.begin(), running_.end(), &sequence, more_urgent);
    WH_CHECK(at != running_.end() && *at == &sequence);
    running_.erase(at);
    num_draining_ -= sequence.draining;
  } else if (sequence.state == SequenceState::kWaiting) {
    const auto at = std::lower_bound(waiting_.begin(), waiting_.end(), &sequence, more_urgent);
    WH_CHECK(at != waiting_.end() && *at == &sequence);
    waiting_.erase(at);
    refused_with_free_ = -1;
  } else {
    --num_held_;
  }
  if (!sequence.started && --num_fresh_ == 0) window_open_ = false;
  sequence.state = SequenceState::kFinished;
  if (sequence.in_flight == 0) blocks_.close(sequence);
}

}  // namespace whippet
