// What tests of the policy share: an engine over the fake runner that is stepped by hand on a clock that
// stands still, and the answers collected from its events.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/active_request.h"
#include "engine/engine_loop.h"
#include "engine/fake_runner.h"

namespace whippet {

constexpr int32_t kFakeVocab = 61;
constexpr int32_t kFakeEos = 60;

struct Answer {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<float> prompt_logprobs;
  std::string text;
  FinishReason finish = FinishReason::kNone;
  int32_t stop_token = -1;
  std::string stop_string, error;
  Usage usage;
  Timing timing;
  bool last_of_request = false;
};

// Events into answers, checking that nothing comes after an answer's last event.
class Answers {
 public:
  void take(std::vector<CoreEvent>& events);
  const Answer& of(uint64_t request, int32_t index = 0) const { return answers_.at({request, index}); }
  bool has(uint64_t request, int32_t index = 0) const { return answers_.contains({request, index}); }
  size_t size() const { return answers_.size(); }

 private:
  std::map<std::pair<uint64_t, int32_t>, Answer> answers_;
};

CoreLimits small_limits();
CoreRequest make_request(std::vector<int32_t> prompt, int32_t max_tokens);
// `count` tokens that depend on `seed`, none of them EOS.
std::vector<int32_t> some_tokens(int32_t count, uint64_t seed);

class TestEngine {
 public:
  explicit TestEngine(const CoreLimits& limits, const Tokenizer* tokenizer = nullptr);

  // The id; a refusal is a failed check.
  uint64_t add(CoreRequest request);
  Result<std::unique_ptr<ActiveRequest>> make(CoreRequest request);
  bool step();
  // Steps until nothing is left to do.
  void drain();
  // No block or node is lost or held by nobody: each block's references are what the sequences hold.
  void check_invariants() const;
  // Nothing is held any more.
  void check_empty() const;

  CoreLimits limits;
  FakeRunner fake;
  RequestRules rules;
  Metrics metrics;
  Clock::time_point now = Clock::time_point(std::chrono::hours(1));
  EngineLoop loop;
  Answers answers;

 private:
  uint64_t next_id_ = 1;
};

// The answer that a request gets with the engine for itself.
Answer answer_alone(const CoreRequest& request, uint64_t id);

}  // namespace whippet
