// What grammars cost with a real model: compiling them, and the mask of a token. Usage: structured_bench
// MODEL
// [--jsonl FILE] prints a line a grammar: milliseconds to compile, bytes, microseconds of an accept and a
// mask.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "api/model_files.h"
#include "grammar/grammar_source.h"

namespace whippet {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Case {
  std::string name;
  StructuredOutputs asked;
};

StructuredOutputs schema(std::string text) {
  StructuredOutputs asked;
  asked.json = std::move(text);
  return asked;
}

// A few that people send, and the worst that the limits let through.
std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back({"small object", schema(R"({"properties":{"name":{"type":"string"},"age":{"type":"integer"}},
                                            "required":["name","age"]})")});
  all.push_back({"any object", {}});
  all.back().asked.json_object = true;
  all.push_back({"regex", {}});
  all.back().asked.regex = "[0-9]{3}-[A-Za-z ]{1,40}";
  std::string many = R"({"type":"object","properties":{)";
  for (int i = 0; i < 200; ++i)
    many += fmt::format(R"({}"field{}":{{"type":["string","null"],"maxLength":{}}})", i == 0 ? "" : ",", i,
                        10 + i % 50);
  all.push_back({"200 optional members", schema(many + "}}")});
  all.push_back({"maxLength 10000", schema(R"({"type":"string","maxLength":10000})")});
  all.push_back({"nested arrays of 100",
                 schema(R"({"type":"array","maxItems":100,"items":{"type":"array","maxItems":100,
                                                   "items":{"type":"string","maxLength":100}}})")});
  all.push_back({"regex .{0,100} nested", {}});
  all.back().asked.regex = "((a|b|.){0,100}x){0,100}";
  all.push_back({"regex of classes", {}});
  for (int i = 0; i < 300; ++i)
    all.back().asked.regex += fmt::format("([^a-{}]|x{})*", static_cast<char>('b' + i % 20), i);
  all.push_back({"1000 choices", {}});
  for (int i = 0; i < 1000; ++i)
    all.back().asked.choice.push_back(fmt::format("choice number {} of many", i * 7919));
  return all;
}

void time_one(grammar::GrammarBuilder& builder, const std::string& name, const StructuredOutputs& asked,
              size_t vocab) {
  const auto begin = Clock::now();
  const auto source = grammar::grammar_source(asked);
  const double written = since(begin);
  if (!source.ok()) return (void)fmt::print("{:28} refused: {}\n", name, source.error().message);
  const auto compiled = builder.compile(*source);
  const double compile = since(begin) - written;
  if (!compiled.ok()) return (void)fmt::print("{:28} refused: {}\n", name, compiled.error().message);
  std::vector<double> fills, accepts;
  std::vector<uint32_t> mask((vocab + 31) / 32);
  std::mt19937 random(1);
  for (int walk = 0; walk < 5; ++walk) {
    grammar::GrammarMatcher matcher = compiled->start();
    for (int step = 0; step < 100 && !matcher.ended(); ++step) {
      auto at = Clock::now();
      matcher.fill(mask);
      fills.push_back(since(at));
      std::vector<int32_t> allowed;
      for (size_t id = 0; id < vocab; ++id)
        if (mask[id / 32] >> (id % 32) & 1) allowed.push_back(static_cast<int32_t>(id));
      if (allowed.empty()) break;
      at = Clock::now();
      matcher.accept(allowed[random() % allowed.size()]);
      accepts.push_back(since(at));
    }
  }
  const auto median = [](std::vector<double>& times) {
    std::ranges::sort(times);
    return 1e6 * times[times.size() / 2];
  };
  const double mean = std::accumulate(fills.begin(), fills.end(), 0.0) / static_cast<double>(fills.size());
  const double middle = median(fills);
  fmt::print(
      "{:28} write {:7.2f} ms  compile {:8.1f} ms  {:8} KiB  mask {:6.1f} us (mean {:6.1f}, worst {:7.1f})  "
      "accept {:5.1f} "
      "us\n",
      name, 1e3 * written, 1e3 * compile, compiled->bytes() >> 10, middle, 1e6 * mean, 1e6 * fills.back(),
      median(accepts));
}

int run(const std::string& model, const char* lines) {
  const Result<ModelFiles> files = read_model_files(model, nullptr, {});
  if (!files.ok() || !files->tokenizer) return fmt::print(stderr, "no tokenizer in {}\n", model), 1;
  grammar::GrammarVocabulary words;
  for (int32_t id = 0; id < files->tokenizer->vocab_size(); ++id)
    words.tokens.emplace_back(files->tokenizer->is_special(id) ? "" : files->tokenizer->token_bytes(id));
  words.stop_ids = files->eos_ids;
  const size_t vocab = words.tokens.size();
  const auto begin = Clock::now();
  grammar::GrammarBuilder builder(std::move(words));
  fmt::print("{}; {} tokens, sorted in {:.0f} ms\n", grammar::grammar_library(), vocab, 1e3 * since(begin));
  if (lines == nullptr) {
    for (const Case& one : cases()) time_one(builder, one.name, one.asked, vocab);
    return 0;
  }
  std::ifstream file(lines);
  int number = 0;
  for (std::string line; std::getline(file, line);)
    time_one(builder, fmt::format("line {}", ++number), schema(line), vocab);
  return 0;
}

}  // namespace
}  // namespace whippet

int main(int argc, char** argv) {
  if (argc < 2) return fmt::print(stderr, "usage: structured_bench MODEL [FILE: a schema a line]\n"), 2;
  return whippet::run(argv[1], argc > 2 ? argv[2] : nullptr);
}
