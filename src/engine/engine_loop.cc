#include "engine/engine_loop.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace whippet {
namespace {

// Wins against every finite logit.
constexpr float kForced = 1e30f;
// Tokens without a choice that are looked for at a time: a long constant must not hold up others.
constexpr size_t kMostForced = 32;

}  // namespace

EngineLoop::EngineLoop(Runner runner, const CoreLimits& limits, ModelFacts facts, int32_t num_frequencies,
                       Metrics& metrics, Now now)
    : runner_(std::move(runner)),
      limits_(limits),
      facts_(std::move(facts)),
      metrics_(metrics),
      now_(std::move(now)),
      pool_(limits.num_blocks),
      blocks_(limits, pool_, facts_.fingerprint),
      scheduler_(limits, blocks_),
      batches_(limits, num_frequencies),
      rows_(static_cast<size_t>(limits.max_num_logits)) {
  for (Plan& plan : plans_) plan.rows.reserve(static_cast<size_t>(limits.max_num_seqs));
}

EngineLoop::~EngineLoop() = default;

bool EngineLoop::step() {
  expire();
  const Clock::time_point now = now_();
  Plan& plan = plans_[std::exchange(next_plan_, 1 - next_plan_)];
  scheduler_.schedule(plan, now);
  std::optional<Launched> current;
  if (!plan.empty()) {
    mark_planned(plan, now);
    current = Launched{&plan, runner_.launch(batches_.build(plan)), now};
  }
  const bool worked = current || last_;
  if (last_) commit(*std::exchange(last_, std::nullopt));
  if (current) runner_.sample(current->ticket, sample_rows(plan));
  if (current && !limits_.overlap) commit(*std::exchange(current, std::nullopt));
  last_ = current;
  if (counting_) set_gauges();
  WH_CHECK(worked || scheduler_.num_running() + scheduler_.num_waiting() == 0 || scheduler_.window_end(),
           "{} sequences run and {} wait, but nothing can run", scheduler_.num_running(),
           scheduler_.num_waiting());
  return worked;
}

int32_t EngineLoop::run_shapes() {
  if (!limits_.round_batches) return 0;
  WH_CHECK(!last_ && requests_.empty(), "shapes are run before requests");
  const std::vector<BatchShape> shapes = batches_.rounded_shapes();
  for (const BatchShape& shape : shapes) {
    for (int turn = 0; turn < 2; ++turn) {  // loads what it needs; is recorded
      const Ticket ticket = runner_.launch(batches_.blank(shape));
      runner_.sample(ticket, {});
      runner_.wait(ticket);
    }
  }
  return static_cast<int32_t>(shapes.size());
}

void EngineLoop::set_gauges() {
  metrics_.set_gauges({.running = scheduler_.num_running(),
                       .waiting = scheduler_.num_waiting(),
                       .num_blocks = pool_.num_blocks(),
                       .used_blocks = pool_.num_blocks() - pool_.num_free(),
                       .cached_blocks = blocks_.num_cached(),
                       .preemptions = scheduler_.num_preemptions()});
}

void EngineLoop::add(std::unique_ptr<ActiveRequest> request) {
  const Clock::time_point now = now_();
  if (counting_) metrics_.add_request(request->asked.params);
  if (request->deadline && (!next_deadline_ || *request->deadline < *next_deadline_)) {
    next_deadline_ = request->deadline;
  }
  for (auto& sequence : request->sequences) {
    blocks_.open(*sequence, request->salt);
    scheduler_.add(*sequence, now);
  }
  requests_.emplace(request->id, std::move(request));
}

void EngineLoop::cancel(uint64_t request_id) {
  if (const auto it = requests_.find(request_id); it != requests_.end()) {
    finish_request(*it->second, FinishReason::kAbort);
  }
}

void EngineLoop::cancel_all() {
  std::vector<uint64_t> ids;
  for (const auto& [id, request] : requests_) ids.push_back(id);
  std::ranges::sort(ids);
  for (const uint64_t id : ids) cancel(id);
  if (last_) commit(*std::exchange(last_, std::nullopt));
}

// Ends what is too late, wherever it is: it is never computed for again.
void EngineLoop::expire() {
  if (!next_deadline_) return;
  const Clock::time_point now = now_();
  if (now < *next_deadline_) return;
  std::vector<ActiveRequest*> late;
  next_deadline_.reset();
  for (const auto& [id, request] : requests_) {
    if (!request->deadline || request->num_unfinished == 0) continue;
    if (*request->deadline <= now) {
      late.push_back(request.get());
    } else if (!next_deadline_ || *request->deadline < *next_deadline_) {
      next_deadline_ = request->deadline;
    }
  }
  std::ranges::sort(late, {}, &ActiveRequest::id);
  for (ActiveRequest* request : late) finish_request(*request, FinishReason::kTimeout);
}

std::optional<Clock::time_point> EngineLoop::wake_time() const {
  const auto window = scheduler_.window_end();
  if (window && next_deadline_) return std::min(*window, *next_deadline_);
  return window ? window : next_deadline_;
}

void EngineLoop::mark_planned(const Plan& plan, Clock::time_point now) {
  for (const PlannedRows& rows : plan.rows) {
    ActiveRequest& request = *rows.sequence->request;
    if (request.first_planned) continue;
    request.first_planned = now;
    if (counting_) metrics_.add_prefix(static_cast<int32_t>(request.asked.prompt.size()), request.num_cached);
  }
}

std::span<const SampleRow> EngineLoop::sample_rows(const Plan& plan) {
  for (const PlannedRows& rows : plan.rows) {
    Sequence& sequence = *rows.sequence;
    const int32_t forced = rows.num_logits - (rows.draws ? 1 : 0);
    for (int32_t i = 0; i < forced; ++i) {
      rows_[static_cast<size_t>(rows.first_logit + i)] =
          forced_row(&sequence.tokens[static_cast<size_t>(rows.begin + i) + 1], &kForced,
                     sequence.request->asked.params.prompt_logprobs.value_or(0));
    }
    if (!rows.draws) continue;
    SampleRow& row = rows_[static_cast<size_t>(rows.first_logit + forced)];
    if (sequence.state == SequenceState::kFinished) {  // one row too many: its token is dropped
      row = SampleRow{};
      continue;
    }
    const int32_t position = rows.begin + rows.count;
    if (sequence.request->asked.token_mask && sequence.masked_length != sequence.tokens.size()) {
      look_ahead(sequence);
      if (!sequence.forced.empty()) {  // the first is drawn, and what comes behind it waits for that
        sequence.sampler.mask_all_but(sequence.forced.front());
        sequence.masked_length = 0;
        sequence.forced.erase(sequence.forced.begin());
      }
    }
    row = sequence.sampler.row(position, position - sequence.num_prompt);
  }
  return std::span(rows_).first(static_cast<size_t>(plan.num_logits));
}

// Makes the mask of the draw behind the sequence's tokens. Where it leaves no choice, collects that token and
// those behind it that leave none either, and leaves the mask of the first draw with a choice. A token that
// only a draw can give its logprob, or that min_tokens may forbid, is drawn.
void EngineLoop::look_ahead(Sequence& sequence) {
  std::vector<int32_t>& tokens = sequence.tokens;
  const ActiveRequest& request = *sequence.request;
  const size_t known = tokens.size();
  const bool may_jump = !request.asked.params.logprobs && request.asked.params.min_tokens == 0;
  const size_t most = std::min(known + kMostForced, static_cast<size_t>(sequence.max_length));
  for (;;) {
    const auto output = std::span(tokens).subspan(static_cast<size_t>(sequence.num_prompt));
    const std::span<uint32_t> bits = sequence.sampler.open_mask();
    sequence.sampler.close_mask(request.asked.token_mask(sequence.index, output, bits));
    sequence.masked_length = tokens.size();
    const int32_t only = may_jump && tokens.size() < most ? sequence.sampler.only_allowed() : -1;
    if (only < 0) break;
    tokens.push_back(only);
  }
  sequence.forced.assign(tokens.begin() + static_cast<int64_t>(known), tokens.end());
  tokens.resize(known);
}

void EngineLoop::wake_siblings(ActiveRequest& request) {
  for (auto& sibling : request.sequences) {
    if (sibling->state == SequenceState::kHeld) scheduler_.wake(*sibling);
  }
}

void EngineLoop::finish_request(ActiveRequest& request, FinishReason reason) {
  const Clock::time_point now = now_();
  for (auto& sequence : request.sequences) {
    if (sequence->state != SequenceState::kFinished) finish(*sequence, reason, now);
  }
  forget_if_done(request);
}

void EngineLoop::forget_if_done(ActiveRequest& request) {
  if (request.num_unfinished == 0 && request.in_flight == 0) requests_.erase(request.id);
}

}  // namespace whippet
