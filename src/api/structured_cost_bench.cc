// What a grammar costs the answers: time a token with and without one, and what a hard schema that arrives
// does to an answer beside it. Usage: structured_cost_bench MODEL [ROUNDS]. Medians of rounds that take
// turns.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "whippet/whippet.h"

namespace whippet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int32_t kCostTokens = 160;  // of each answer whose time is taken

constexpr const char* kPeople =
    R"({"type":"array","minItems":200,"items":{"type":"object","additionalProperties":false,
        "properties":{"name":{"type":"string","maxLength":40},
                      "age":{"type":"integer","minimum":0,"maximum":120},"city":{"type":"string"},
                      "tags":{"type":"array","items":{"type":"string","maxLength":20},"maxItems":4}},
        "required":["name","age","city","tags"]}})";

// 60 members of many kinds; `serial` makes it one that no cache has.
std::string hard_schema(int serial) {
  std::string text = R"({"type":"object","properties":{)";
  for (int i = 0; i < 60; ++i)
    text += fmt::format(R"({}"field_{}_{}":{{"type":["string","null"],"maxLength":{}}})", i == 0 ? "" : ",",
                        serial, i, 20 + i);
  return text + "}}";
}

double ms(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

double at_share(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

Request request(int number, int32_t tokens, const char* schema, bool drawn) {
  Request one;
  one.prompt = fmt::format("Number {}. A list of people, as JSON, with name, age, city and tags:\n", number);
  one.params.max_tokens = tokens;
  one.params.temperature = 1;
  one.params.seed = static_cast<uint64_t>(number);
  one.params.ignore_eos = true;
  if (drawn) one.params.logprobs = 0;  // no token is appended without a draw
  if (schema != nullptr) one.params.structured_outputs.emplace().json = schema;
  return one;
}

// When each token of one answer came.
class Answer {
 public:
  void start(Engine& engine, Request asked) {
    engine.submit(std::move(asked), [this](const Event& event) {
      const std::lock_guard lock(mutex_);
      for (size_t i = 0; i < event.token_ids.size(); ++i) times_.push_back(Clock::now());
      done_ |= event.last;
      changed_.notify_all();
    });
  }
  void wait(size_t tokens) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ || times_.size() >= tokens; });
  }
  void wait() { wait(~size_t{0}); }
  std::vector<Clock::time_point> times() {
    const std::lock_guard lock(mutex_);
    return times_;
  }
  // Milliseconds between tokens that came in [from, to).
  std::vector<double> gaps(Clock::time_point from, Clock::time_point to) {
    std::vector<double> all;
    const auto when = times();
    for (size_t i = 1; i < when.size(); ++i)
      if (when[i] >= from && when[i - 1] < to) all.push_back(ms(when[i] - when[i - 1]));
    return all;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Clock::time_point> times_;
  bool done_ = false;
};

// Milliseconds a token of `batch` answers together, from when the last has begun until the first ends.
double token_time(Engine& engine, int batch, int32_t tokens, const char* schema, bool drawn) {
  std::vector<Answer> answers(static_cast<size_t>(batch));
  for (int i = 0; i < batch; ++i)
    answers[static_cast<size_t>(i)].start(engine, request(i, tokens, schema, drawn));
  Clock::time_point begin, end = Clock::time_point::max();
  for (Answer& answer : answers) {
    answer.wait();
    begin = std::max(begin, answer.times().front());
    end = std::min(end, answer.times().back());
  }
  size_t between = 0;
  for (Answer& answer : answers)
    for (const auto when : answer.times()) between += when > begin && when <= end;
  return ms(end - begin) * batch / static_cast<double>(between);
}

void cost_of_masks(Engine& engine, int rounds) {
  engine.prepare([] {
    StructuredOutputs asked;
    asked.json = kPeople;
    return asked;
  }());
  for (const int batch : {1, 32})
    for (const bool drawn : {true, false}) {
      std::vector<double> free, bound, ratio;
      for (int i = 0; i <= rounds; ++i) {
        double without = 0, with = 0;
        for (const bool bound_now : {i % 2 == 0, i % 2 != 0})  // either goes first in turn
          (bound_now ? with : without) =
              token_time(engine, batch, kCostTokens, bound_now ? kPeople : nullptr, drawn);
        if (i == 0) continue;  // warms up
        free.push_back(without);
        bound.push_back(with);
        ratio.push_back(with / without);
      }
      fmt::print(
          "batch {:2}, {}: {:.3f} ms a token without, {:.3f} with a grammar, ratio {:.3f} ({:.3f}..{:.3f})\n",
          batch, drawn ? "every token drawn" : "jump-forward     ", at_share(free, 0.5), at_share(bound, 0.5),
          at_share(ratio, 0.5), at_share(ratio, 0), at_share(ratio, 1));
    }
}

void cost_of_arrival(Engine& engine, int rounds) {
  std::vector<double> before, during, compile;
  for (int i = 0; i < rounds; ++i) {
    Answer neighbour;
    neighbour.start(engine, request(1000 + i, 400, nullptr, false));
    neighbour.wait(40);
    const auto quiet = Clock::now();
    neighbour.wait(120);
    const auto begin = Clock::now();
    StructuredOutputs asked;
    asked.json = hard_schema(i);
    engine.prepare(asked);
    const auto end = Clock::now();
    compile.push_back(ms(end - begin));
    neighbour.wait();
    for (const double gap : neighbour.gaps(quiet, begin)) before.push_back(gap);
    for (const double gap : neighbour.gaps(begin, end)) during.push_back(gap);
  }
  const auto line = [](const char* name, const std::vector<double>& gaps) {
    fmt::print(
        "  {} {:4} tokens: {:.2f} ms between two (median), {:.2f} (p90), {:.2f} (p99), {:.2f} (most)\n", name,
        gaps.size(), at_share(gaps, 0.5), at_share(gaps, 0.9), at_share(gaps, 0.99), at_share(gaps, 1));
  };
  fmt::print("a schema of 60 members arrives and is compiled ({:.0f} ms) beside an answer:\n",
             at_share(compile, 0.5));
  line("before, ", before);
  line("meanwhile,", during);
}

// A constrained answer that joins, against one that is not constrained.
void cost_of_company(Engine& engine, int rounds) {
  std::vector<double> gaps[2];
  for (int i = 0; i < rounds; ++i) {
    const std::string schema = hard_schema(i);
    for (const bool bound : {false, true}) {
      Answer neighbour, other;
      neighbour.start(engine, request(2000 + i, 120, nullptr, false));
      neighbour.wait(10);
      other.start(engine, request(3000 + i, 60, bound ? schema.c_str() : nullptr, true));
      other.wait(2);
      const auto begin = Clock::now();
      other.wait();
      for (const double gap : neighbour.gaps(begin, Clock::now())) gaps[bound].push_back(gap);
      neighbour.wait();
    }
  }
  for (const bool bound : {false, true})
    fmt::print("beside {}: {:.2f} ms between two tokens (median), {:.2f} (p90), {:.2f} (p99)\n",
               bound ? "one held to 60 members  " : "an unconstrained answer ", at_share(gaps[bound], 0.5),
               at_share(gaps[bound], 0.9), at_share(gaps[bound], 0.99));
}

int run(const char* model, int rounds) {
  EngineConfig config;
  config.model = model;
  config.max_model_len = 1024;
  config.max_num_seqs = 32;
  config.enable_prefix_caching = false;
  Engine engine(config);
  cost_of_masks(engine, rounds);
  cost_of_arrival(engine, rounds);
  cost_of_company(engine, rounds);
  return 0;
}

}  // namespace
}  // namespace whippet

int main(int argc, char** argv) {
  if (argc < 2) return fmt::print(stderr, "usage: structured_cost_bench MODEL [ROUNDS]\n"), 2;
  try {
    return whippet::run(argv[1], argc > 2 ? std::max(std::atoi(argv[2]), 1) : 7);
  } catch (const whippet::Failure& failure) {
    return fmt::print(stderr, "{}\n", failure.what()), 1;
  }
}
