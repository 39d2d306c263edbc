// Random workloads over the fake runner, each property checked after every step.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <random>

#include "engine/engine_testing.h"

namespace whippet {
namespace {

class Workload {
 public:
  explicit Workload(uint32_t seed) : random_(seed), limits_(make_limits()), engine_(limits_) {}

  // Returns the steps it took.
  int64_t run(int64_t turns) {
    for (int64_t turn = 0; turn < turns; ++turn) {
      if (chance(0.2) && requests_.size() < 400) add();
      if (chance(0.02) && !requests_.empty())
        engine_.loop.cancel(1 + pick<uint64_t>(0, requests_.size() - 1));
      step();
    }
    int64_t more = 0;
    while (engine_.loop.has_requests()) {
      step();
      WH_CHECK(++more < 200'000, "does not finish");
    }
    step();
    engine_.check_empty();
    check_answers();
    return engine_.fake.num_steps();
  }

  uint64_t num_preemptions() const { return engine_.loop.scheduler().num_preemptions(); }
  int32_t num_hits() const { return num_hits_; }
  int32_t num_compared() const { return num_compared_; }

 private:
  template <class T>
  T pick(T low, T high) {
    return std::uniform_int_distribution<T>(low, high)(random_);
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }

  CoreLimits make_limits() {
    CoreLimits limits{.max_model_len = pick(20, 120), .max_num_seqs = pick(1, 8)};
    limits.max_num_batched_tokens = limits.max_num_seqs + pick(0, 40);
    limits.max_num_logits = limits.max_num_seqs + pick(1, 8);
    limits.block_size = std::vector{1, 2, 4, 8}[pick<size_t>(0, 3)];
    limits.enable_prefix_caching = chance(0.8);
    limits.overlap = chance(0.5);
    limits.seed = 7;
    if (chance(0.3)) limits.window = pick(2, 30);  // the fake reads the position before
    if (chance(0.2)) {
      limits.enable_chunked_prefill = false;
      limits.max_num_batched_tokens = limits.max_model_len + limits.max_num_seqs;
    }
    if (chance(0.2)) {
      limits.batch_wait_ms = 3;
      limits.batch_wait_size = pick(0, 5);
    }
    const int32_t least = peak_blocks(limits, limits.max_model_len);
    limits.num_blocks = chance(0.6) ? least : least + pick(0, 3 * least);
    return limits;
  }

  void add() {
    const int32_t length = pick(1, limits_.max_model_len - 1);
    // A few beginnings that many prompts share.
    std::vector<int32_t> prompt = some_tokens(length, pick<uint64_t>(0, 2));
    if (chance(0.5)) prompt[prompt.size() / 2] = pick(0, kFakeEos - 1);
    CoreRequest request = make_request(std::move(prompt), pick(1, limits_.max_model_len - length));
    SamplingParams& params = request.params;
    request.priority = pick(-1, 1);
    if (chance(0.1)) request.timeout_s = 0.001 * pick(0, 200);
    if (chance(0.3)) request.cache_salt = "tenant";
    params.ignore_eos = chance(0.5);
    if (chance(0.2)) params.n = pick(1, 3);
    if (chance(0.3)) params.temperature = 1;
    if (chance(0.2)) params.min_tokens = pick(0, *params.max_tokens);
    if (chance(0.2)) params.stop_token_ids = {pick(0, kFakeEos - 1)};
    if (chance(0.2)) params.frequency_penalty = 1;
    if (chance(0.2)) params.banned_token_ids = {pick(0, kFakeEos - 1)};
    if (chance(0.2)) params.prompt_logprobs = 0;
    if (chance(0.2)) params.logprobs = 0;
    if (chance(0.1)) {
      request.token_mask = growing_mask();
    }
    requests_.push_back(request);
    engine_.add(std::move(request));
  }

  // Like a grammar's it only ever goes on: what it has seen of an answer must stay. Now and then there is a
  // run of tokens without a choice, and sometimes the last of them ends the answer.
  static TokenMask growing_mask() {
    auto seen = std::make_shared<std::map<int32_t, std::vector<int32_t>>>();
    return [seen](int32_t choice, std::span<const int32_t> output, std::span<uint32_t> mask) {
      std::vector<int32_t>& before = (*seen)[choice];
      WH_CHECK(output.size() >= before.size() && std::ranges::equal(before, output.first(before.size())));
      before.assign(output.begin(), output.end());
      if (output.size() % 7 < 3) {
        const auto only = static_cast<int32_t>(output.size() * 5 % (kFakeEos + 1));
        std::ranges::fill(mask, 0u);
        mask[static_cast<size_t>(only / 32)] = 1u << (only % 32);
        return true;
      }
      mask[0] &= ~(1u << (output.back() % 32));
      return output.size() % 2 == 1;
    };
  }

  void step() {
    const Sequence* first = most_urgent();
    const int32_t before = first != nullptr ? first->num_committed : 0;
    const uint64_t first_id = first != nullptr ? first->request_id : 0;
    if (!engine_.step()) engine_.now += std::chrono::milliseconds(1);
    if (chance(0.3)) engine_.now += std::chrono::milliseconds(1);
    engine_.check_invariants();
    // Whoever is most urgent goes on: with overlap its result is seen a step later.
    const Sequence* after = most_urgent();
    const bool same = after != nullptr && first != nullptr && after->request_id == first_id && after == first;
    stalled_ = same && after->num_committed <= before ? stalled_ + 1 : 0;
    WH_CHECK(stalled_ <= 3, "the most urgent sequence does not go on");
  }

  const Sequence* most_urgent() const {
    const auto& running = engine_.loop.scheduler().running();
    return running.empty() ? nullptr : running.front();
  }

  void check_answers() {
    for (uint64_t id = 1; id <= requests_.size(); ++id) {
      const CoreRequest& request = requests_[id - 1];
      for (int32_t index = 0; index < request.params.n; ++index) {
        const Answer& answer = engine_.answers.of(id, index);
        ASSERT_NE(answer.finish, FinishReason::kNone) << id;
        num_hits_ += answer.usage.cached_tokens > 0;
        ASSERT_LE(static_cast<int32_t>(answer.tokens.size()), *request.params.max_tokens);
        ASSERT_EQ(answer.usage.completion_tokens, static_cast<int32_t>(answer.tokens.size()));
        ASSERT_EQ(answer.logprobs.size(), request.params.logprobs ? answer.tokens.size() : 0);
      }
      if (id % 8 == 0) compare(id, request);
    }
  }

  // Against the engine all for itself; what was cut short must be a beginning.
  void compare(uint64_t id, CoreRequest request) {
    request.timeout_s = 0;
    request.params.n = 1;
    if (request.token_mask) request.token_mask = growing_mask();
    const Answer alone = answer_alone(request, id);
    const Answer& answer = engine_.answers.of(id);
    ++num_compared_;
    if (request.token_mask) {  // every token drawn
      CoreRequest drawn = request;
      drawn.params.logprobs = 0;
      drawn.token_mask = growing_mask();
      ASSERT_EQ(answer_alone(drawn, id).tokens, alone.tokens) << id;
    }
    ASSERT_LE(answer.tokens.size(), alone.tokens.size());
    ASSERT_TRUE(std::equal(answer.tokens.begin(), answer.tokens.end(), alone.tokens.begin())) << id;
    if (answer.finish == FinishReason::kLength || answer.finish == FinishReason::kStop) {
      ASSERT_EQ(answer.finish, alone.finish);
      ASSERT_EQ(answer.tokens, alone.tokens) << id;
      ASSERT_EQ(answer.logprobs, alone.logprobs) << id;
      ASSERT_EQ(answer.prompt_logprobs, alone.prompt_logprobs) << id;
    }
  }

  std::mt19937 random_;
  CoreLimits limits_;
  TestEngine engine_;
  std::vector<CoreRequest> requests_;
  int32_t stalled_ = 0;
  int32_t num_hits_ = 0;
  int32_t num_compared_ = 0;
};

TEST(Workload, AHundredThousandStepsKeepEveryPromise) {
  int64_t steps = 0;
  uint64_t preemptions = 0;
  int32_t hits = 0, compared = 0;
  for (uint32_t seed = 1; steps < 100'000; ++seed) {
    SCOPED_TRACE(seed);
    Workload workload(seed);
    steps += workload.run(300);
    if (HasFatalFailure()) return;
    preemptions += workload.num_preemptions();
    hits += workload.num_hits();
    compared += workload.num_compared();
  }
  printf("%lld steps, %llu preemptions, %d prefix hits, %d answers compared\n", static_cast<long long>(steps),
         static_cast<unsigned long long>(preemptions), hits, compared);
  EXPECT_GT(preemptions, 1000u);
  EXPECT_GT(hits, 1000);
  EXPECT_GT(compared, 500);
}

int64_t resident_pages() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident;
}

TEST(Workload, LongSoakKeepsMemoryFlat) {
  TestEngine engine(small_limits());
  const auto serve = [&](int32_t requests) {
    for (int32_t i = 0; i < requests; ++i) {
      CoreRequest request = make_request(some_tokens(1 + i % 50, i), 1 + i % 13);
      request.cache_salt = std::to_string(i % 1000);
      request.params.n = 1 + i % 2;
      auto made = engine.make(std::move(request));
      ASSERT_TRUE(made.ok());
      const uint64_t id = (*made)->id;
      engine.loop.add(std::move(made).value());
      if (i % 7 == 0) engine.loop.cancel(id);
      while (engine.loop.scheduler().num_waiting() > 4) engine.loop.step();
      engine.loop.events().clear();
    }
    while (engine.loop.has_requests()) engine.loop.step();
    engine.loop.events().clear();
  };
  serve(20'000);
  const int64_t before = resident_pages();
  serve(200'000);
  EXPECT_LE(resident_pages(), before + before / 100 + 16);
  engine.check_empty();
}

}  // namespace
}  // namespace whippet
