#include "backend/cuda/cuda_bench_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

namespace whippet {
namespace {

struct Kind {
  const char* name;
  SampleRow row;
};

std::vector<Kind> kinds(const std::vector<int32_t>& seen) {
  std::vector<Kind> all(5);
  all[0].name = "greedy";
  all[1].name = "temperature";
  all[2].name = "top_k 20, top_p 0.8, repetition 1.1";
  all[3].name = "top_p 0.95";
  all[4].name = "min_p 0.05";
  for (size_t i = 1; i < all.size(); ++i) all[i].row.temperature = 0.7f;
  SampleRow& usual = all[2].row;
  usual.top_k = 20;
  usual.top_p = 0.8f;
  usual.repetition_penalty = 1.1f;
  usual.num_seen = static_cast<int32_t>(seen.size());
  usual.seen_ids = seen.data();
  all[3].row.top_p = 0.95f;
  all[4].row.min_p = 0.05f;
  return all;
}

// The median microseconds of one call.
double time_of(Backend& backend, const SampleArgs& args) {
  int32_t word = 0;
  const auto settle = [&] { backend.copy_to_host(&word, args.tokens, sizeof(word)); };
  for (int i = 0; i < 3; ++i) backend.sample(args);
  settle();
  std::vector<double> times;
  for (int sample = 0; sample < 7; ++sample) {
    constexpr int kRepeat = 10;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRepeat; ++i) backend.sample(args);
    settle();
    const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
    times.push_back(spent.count() / kRepeat);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

void bench_sampling(Backend& backend, int32_t vocab, std::span<const int32_t> rows) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> values(static_cast<size_t>(vocab));
  std::vector<int32_t> seen;
  for (int32_t i = 0; i < 600; ++i) seen.push_back(static_cast<int32_t>(int64_t{i} * 7919 % vocab));
  for (const int32_t count : rows) {
    const auto n = static_cast<size_t>(count);
    const Buffer logits = backend.allocate(n * values.size() * 4), tokens = backend.allocate(n * 4);
    for (const bool flat : {false, true}) {
      for (const Kind& kind : kinds(seen)) {
        // Anew for each kind: penalties change the logits.
        for (float& value : values) value = flat ? 1.0f : normal(random);
        for (size_t r = 0; r < n; ++r)
          backend.copy_to_device(logits.as<float>() + r * values.size(), values.data(), values.size() * 4);
        std::vector<SampleRow> each(n, kind.row);
        for (size_t r = 0; r < n; ++r) each[r].seed = r;
        SampleArgs args;
        args.logits = logits.mat(DType::kF32, count, vocab);
        args.rows = each.data();
        args.vocab_used = vocab;
        args.tokens = tokens.as<int32_t>();
        fmt::print("{:4} rows, {} logits, {}: {:.1f} us\n", count, flat ? "equal" : "normal", kind.name,
                   time_of(backend, args));
      }
    }
  }
}

}  // namespace whippet
