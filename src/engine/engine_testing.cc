#include "engine/engine_testing.h"

#include "base/check.h"
#include "engine/hash.h"

namespace whippet {

void Answers::take(std::vector<CoreEvent>& events) {
  for (CoreEvent& event : events) {
    Answer& answer = answers_[{event.request_id, event.index}];
    WH_CHECK(answer.finish == FinishReason::kNone, "request {}: an event after the last one",
             event.request_id);
    WH_CHECK(event.finish != FinishReason::kNone || !event.token_ids.empty() || !event.text.empty());
    answer.tokens.insert(answer.tokens.end(), event.token_ids.begin(), event.token_ids.end());
    for (const TokenLogprob& logprob : event.logprobs) answer.logprobs.push_back(logprob.logprob);
    for (const TokenLogprob& logprob : event.prompt_logprobs)
      answer.prompt_logprobs.push_back(logprob.logprob);
    answer.text += event.text;
    answer.finish = event.finish;
    answer.stop_token = event.stop_token;
    answer.stop_string = event.stop_string;
    answer.error = event.error;
    answer.usage = event.usage;
    answer.timing = event.timing;
    answer.last_of_request = event.last_of_request;
  }
  events.clear();
}

CoreLimits small_limits() {
  return {.max_model_len = 64,
          .max_num_seqs = 4,
          .max_num_batched_tokens = 16,
          .max_num_logits = 12,
          .block_size = 4,
          .num_blocks = 32,
          .seed = 7};
}

CoreRequest make_request(std::vector<int32_t> prompt, int32_t max_tokens) {
  CoreRequest request;
  request.prompt = std::move(prompt);
  request.params.temperature = 0;
  request.params.max_tokens = max_tokens;
  request.params.ignore_eos = true;
  return request;
}

std::vector<int32_t> some_tokens(int32_t count, uint64_t seed) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(hash_mix(seed, static_cast<uint64_t>(i)) % kFakeEos));
  }
  return tokens;
}

TestEngine::TestEngine(const CoreLimits& given, const Tokenizer* tokenizer)
    : limits(given),
      fake(given, kFakeVocab),
      rules{.limits = given,
            .facts = {.name = "fake", .fingerprint = "f", .eos_ids = {kFakeEos}, .vocab_used = kFakeVocab},
            .tokenizer = tokenizer,
            .seed = given.seed,
            .frequencies = [](int32_t) { return std::vector<float>(); }},
      metrics(given.max_model_len),
      loop(fake.runner(), given, rules.facts, 0, metrics, [this] { return now; }) {}

Result<std::unique_ptr<ActiveRequest>> TestEngine::make(CoreRequest request) {
  return make_active_request(std::move(request), next_id_++, rules, now);
}

uint64_t TestEngine::add(CoreRequest request) {
  auto made = make(std::move(request));
  WH_CHECK(made.ok(), "{}", made.error().message);
  const uint64_t id = made.value()->id;
  loop.add(std::move(made).value());
  return id;
}

bool TestEngine::step() {
  const bool worked = loop.step();
  answers.take(loop.events());
  return worked;
}

void TestEngine::drain() {
  for (int64_t turns = 0; loop.has_requests(); ++turns) {
    WH_CHECK(turns < 1'000'000, "the engine does not finish");
    if (!step() && loop.has_requests()) now += std::chrono::milliseconds(1);  // a batching window
  }
  step();
}

void TestEngine::check_invariants() const {
  std::vector<int32_t> held(static_cast<size_t>(limits.num_blocks), 0);
  WH_CHECK_LE(loop.scheduler().num_running(), limits.max_num_seqs);
  for (const Sequence* sequence : loop.scheduler().running()) {
    std::set<int32_t> own;
    for (const int32_t block : sequence->blocks) {
      if (block < 0) continue;
      WH_CHECK(own.insert(block).second, "block {} stands twice in one table", block);
      ++held[static_cast<size_t>(block)];
    }
    WH_CHECK_LE(static_cast<int32_t>(own.size()), peak_blocks(limits, limits.max_model_len));
    WH_CHECK_LE(sequence->length(), sequence->max_length);
    WH_CHECK_LE(sequence->num_committed, sequence->num_planned);
  }
  int32_t free = 0;
  for (int32_t block = 0; block < limits.num_blocks; ++block) {
    const int32_t references = loop.pool().references(block);
    free += references == 0;
    // With overlap, sequences that have finished may keep blocks for one step more.
    WH_CHECK(limits.overlap ? references >= held[static_cast<size_t>(block)]
                            : references == held[static_cast<size_t>(block)],
             "block {} has {} references, {} are known", block, references, held[static_cast<size_t>(block)]);
  }
  WH_CHECK_EQ(free, loop.pool().num_free());
}

void TestEngine::check_empty() const {
  WH_CHECK(!loop.has_requests() && !loop.scheduler().has_work());
  WH_CHECK_EQ(loop.scheduler().num_waiting(), 0);
  WH_CHECK_EQ(loop.pool().num_free(), limits.num_blocks);
}

Answer answer_alone(const CoreRequest& request, uint64_t id) {
  CoreLimits limits = small_limits();
  limits.max_model_len = 512;
  limits.max_num_batched_tokens = 512;
  limits.max_num_logits = 512;
  limits.num_blocks = 128;
  TestEngine engine(limits);
  engine.rules.seed = 7;
  auto made = make_active_request(request, id, engine.rules, engine.now);
  WH_CHECK(made.ok(), "{}", made.error().message);
  engine.loop.add(std::move(made).value());
  engine.drain();
  return engine.answers.of(id);
}

}  // namespace whippet
