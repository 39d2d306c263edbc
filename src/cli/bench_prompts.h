// The prompts of `whippet bench serve` and `bench throughput`: from a file, or random words.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"

namespace whippet {

struct BenchPrompt {
  std::string text;
  nlohmann::ordered_json messages;  // of a chat that the file has as such; null: `text` is all
  int32_t output_len = 0;           // tokens of the answer that the file asks for; 0: nothing
  int64_t line = 0;                 // of the file
};

// `count` prompts of a file, from its beginning again where it has fewer. A line is a text, or in JSON an
// object with "prompt", "messages", "question" or "turns" (its first), and maybe "output_len" or
// "max_tokens".
Result<std::vector<BenchPrompt>> read_bench_prompts(const std::string& path, size_t count);

// Numbers that lie evenly between length * (1 - spread) and length * (1 + spread), at least 1.
std::uniform_int_distribution<int64_t> lengths_around(int32_t length, double spread);

// `count` prompts of short words, each about a token; lengths_around says how many words.
std::vector<BenchPrompt> random_bench_prompts(size_t count, int32_t length, double spread,
                                              std::mt19937_64& random);

}  // namespace whippet
