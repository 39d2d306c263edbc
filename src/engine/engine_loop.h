// The engine without its thread: one step() plans, launches and commits. EngineCore turns it round and round;
// tests step it by hand. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "backend/views.h"
#include "engine/batch.h"
#include "engine/block_manager.h"
#include "engine/block_pool.h"
#include "engine/event.h"
#include "engine/limits.h"
#include "engine/metrics.h"
#include "engine/model_facts.h"
#include "engine/runner.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"

namespace whippet {

class EngineLoop {
 public:
  using Now = std::function<Clock::time_point()>;

  // num_frequencies: RoPE frequencies of a sequence (head_dim / 2). metrics must outlive the loop.
  EngineLoop(Runner runner, const CoreLimits& limits, ModelFacts facts, int32_t num_frequencies,
             Metrics& metrics, Now now = Clock::now);
  ~EngineLoop();

  void add(std::unique_ptr<ActiveRequest> request);
  // Ends it with "abort". Unknown and finished ids are ignored.
  void cancel(uint64_t request_id);
  void cancel_all();

  // One turn: the next step is planned and launched, the one before (with overlap) or this one committed.
  // False when nothing could run: waiting for a message or until wake_time() is no loss.
  bool step();
  // When a turn may do something without any message: a deadline, the end of a batching window.
  std::optional<Clock::time_point> wake_time() const;

  // What has happened since the caller last emptied it.
  std::vector<CoreEvent>& events() { return events_; }

  bool has_requests() const { return !requests_.empty(); }
  const Scheduler& scheduler() const { return scheduler_; }
  const BlockManager& blocks() const { return blocks_; }
  const BlockPool& pool() const { return pool_; }
  // Runs every shape that steps are rounded to, on rows of nobody, so that the device knows them: before the
  // first request. The number of shapes.
  int32_t run_shapes();
  // Nothing is counted meanwhile: warm-up.
  void set_counting(bool counting) { counting_ = counting; }

 private:
  struct Launched {
    const Plan* plan;
    Ticket ticket;
    Clock::time_point planned;
  };
  void set_gauges();
  void expire();
  std::span<const SampleRow> sample_rows(const Plan& plan);
  void mark_planned(const Plan& plan, Clock::time_point now);
  void commit(const Launched& step);
  void commit_rows(const PlannedRows& rows, const StepOutput& out, Clock::time_point now);
  void add_prompt_logprobs(const PlannedRows& rows, const StepOutput& out);
  void look_ahead(Sequence& sequence);
  void accept(Sequence& sequence, int32_t token, Clock::time_point now);
  void accept_forced(Sequence& sequence, Clock::time_point now);
  void report(Sequence& sequence, FinishReason finish, Clock::time_point now);
  void finish(Sequence& sequence, FinishReason reason, Clock::time_point now, std::string error = {});
  void finish_request(ActiveRequest& request, FinishReason reason);
  void wake_siblings(ActiveRequest& request);
  void forget_if_done(ActiveRequest& request);
  void count_step(const Launched& step, Clock::time_point now);

  Runner runner_;
  CoreLimits limits_;
  ModelFacts facts_;
  Metrics& metrics_;
  Now now_;
  BlockPool pool_;
  BlockManager blocks_;
  Scheduler scheduler_;
  BatchBuilder batches_;
  Plan plans_[2];
  int32_t next_plan_ = 0;
  std::optional<Launched> last_;  // launched, not committed
  std::vector<SampleRow> rows_;   // [max_num_logits]
  std::unordered_map<uint64_t, std::unique_ptr<ActiveRequest>> requests_;
  std::optional<Clock::time_point> next_deadline_;
  std::vector<CoreEvent> events_;
  bool counting_ = true;
  int32_t drawn_tokens_ = 0;   // of the step being committed
  int32_t prompt_tokens_ = 0;  // of prompts that it completed
};

}  // namespace whippet
