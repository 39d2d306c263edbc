// Who runs in the next step, with how many rows. Host policy only: it knows sequences and block numbers.
//
// Order: by urgency (time of submission + 10 s a priority level). Running sequences first, most urgent first:
// one row each for those that only draw, and what is left of max_num_batched_tokens for prompts in progress.
// Then waiting ones are admitted in order, none overtaking, while there are seats, rows and blocks for their
// whole prompt. When blocks run out, the least urgent running sequence is preempted, so the most urgent one
// always goes on and every sequence finishes. Engine thread only; nothing allocates in schedule().
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "engine/block_manager.h"
#include "engine/limits.h"
#include "engine/plan.h"
#include "engine/sequence.h"

namespace whippet {

class Scheduler {
 public:
  Scheduler(const CoreLimits& limits, BlockManager& blocks);

  // A sequence that is kWaiting or kHeld; its blocks are open.
  void add(Sequence& sequence, Clock::time_point now);
  // A held sequence may start: the prompt it shares is in the cache.
  void wake(Sequence& sequence);
  // Fills `plan` with the next step; its sequences are marked planned. Empty: nothing can run now.
  void schedule(Plan& plan, Clock::time_point now);
  // After a step's result has been taken over: one entry of its plan is no longer in flight.
  void commit(const PlannedRows& rows);
  // The sequence leaves, from whatever state. Its blocks are released once no launched step refers to them.
  void finish(Sequence& sequence);

  // Running or waiting sequences exist.
  bool has_work() const { return !running_.empty() || !waiting_.empty(); }
  // When an empty plan may become another one without any message: the end of the batching window.
  std::optional<Clock::time_point> window_end() const;

  int32_t num_running() const { return static_cast<int32_t>(running_.size()); }
  int32_t num_waiting() const { return static_cast<int32_t>(waiting_.size()) + num_held_; }
  uint64_t num_preemptions() const { return num_preemptions_; }
  const std::vector<Sequence*>& running() const { return running_; }

 private:
  struct Budget {
    int32_t tokens;        // rows left
    int32_t reserved;      // of them, for running sequences that only draw and have not had their row
    int32_t extra_logits;  // rows left whose logits are wanted without a draw
  };
  void preempt_drained();
  void plan_running(Plan& plan, Budget& budget);
  void admit(Plan& plan, Budget& budget, Clock::time_point now);
  bool window_open(Clock::time_point now);
  bool try_admit(Sequence& sequence, Plan& plan, Budget& budget);
  // Rows that the sequence may have now.
  int32_t chunk(const Sequence& sequence, const Budget& budget, bool alone) const;
  bool make_room(Sequence& sequence, int32_t length, Budget& budget);
  void preempt(Sequence& sequence);
  void plan_rows(Sequence& sequence, int32_t count, Plan& plan, Budget& budget);
  void insert_running(Sequence& sequence);
  void insert_waiting(Sequence& sequence);

  CoreLimits limits_;
  BlockManager& blocks_;
  std::vector<Sequence*> running_;  // most urgent first
  std::deque<Sequence*> waiting_;   // most urgent first
  int32_t num_held_ = 0;
  bool preempted_ = false;  // in this schedule()
  int32_t num_draining_ = 0;
  int32_t refused_with_free_ = -1;  // free blocks when the first waiting one was last refused
  // The batching window.
  int32_t num_fresh_ = 0;  // waiting sequences that have never run
  bool window_open_ = false;
  Clock::time_point window_begin_;
  uint64_t num_preemptions_ = 0;
};

}  // namespace whippet
