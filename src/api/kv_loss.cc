#include "api/kv_loss.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "model/sequence_runner.h"

namespace whippet {
namespace {

constexpr size_t kTokens = 160;
constexpr size_t kRows = 32;  // of one forward: the logits of a large vocabulary stay below 20 MB

constexpr const char* kText =
    "The lighthouse keeper wrote down the weather every evening: wind from the north-west, 7 m/s, a falling "
    "barometer, two ships in sight. On the 14th of March 1897 the page is empty. "
    "Why? 灯塔看守人每天晚上都记录天气，只有那一天没有写。村里的老人说，当时海面起了大雾，"
    "船队直到第二天早晨才回到港口。 "
    "def mean(values):\n    return sum(values) / len(values) if values else 0.0\n\n"
    "The keeper's daughter, who was nine, remembered that the lamp had burned all night, that nobody had "
    "slept, and that in the morning her father counted the boats: eleven, twelve, thirteen. "
    "一共十三条船，一条也没有少。";

// Ids that look like nothing in particular, the same every time. (Numerical Recipes' generator)
std::vector<int32_t> arbitrary_ids(int32_t vocab) {
  std::vector<int32_t> ids(kTokens);
  uint32_t state = 1;
  for (int32_t& id : ids) {
    state = state * 1664525u + 1013904223u;
    id = static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(vocab));
  }
  return ids;
}

}  // namespace

std::vector<int32_t> kv_canary(const Tokenizer* tokenizer, const ModelSpec& spec) {
  std::vector<int32_t> ids;
  if (tokenizer != nullptr)
    ids = tokenizer->encode(kText, {.parse_special = false, .add_special_tokens = true});
  std::erase_if(ids, [&](int32_t id) { return id < 0 || id >= spec.vocab_size; });
  if (ids.size() < 2) ids = arbitrary_ids(spec.vocab_size);
  ids.resize(std::min({ids.size(), kTokens, static_cast<size_t>(std::max(spec.max_position, 0))}));
  if (ids.size() < 2) ids.clear();
  return ids;
}

Quality measure_kv_loss(const Model& model, Backend& backend, std::span<const int32_t> ids, DType kept,
                        DType reference) {
  const auto length = static_cast<int32_t>(ids.size());
  SequenceRunner tried(model, backend, length, kept, static_cast<int32_t>(kRows));
  SequenceRunner usual(model, backend, length, reference, static_cast<int32_t>(kRows));
  const auto vocab = static_cast<size_t>(model.spec.vocab_size);
  Quality quality;
  for (size_t begin = 0; begin < ids.size(); begin += kRows) {
    const auto rows = ids.subspan(begin, std::min(kRows, ids.size() - begin));
    const std::vector<float> logits = tried.feed(rows), expected = usual.feed(rows);
    for (size_t r = 0; r < rows.size() && begin + r + 1 < ids.size(); ++r)
      add_position(quality, std::span(logits).subspan(r * vocab, vocab), ids[begin + r + 1],
                   std::span(expected).subspan(r * vocab, vocab));
  }
  return quality;
}

Status check_kv_loss(const Model& model, Backend& backend, const Tokenizer* tokenizer, DType reference,
                     bool force) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<int32_t> ids = kv_canary(tokenizer, model.spec);
  if (ids.empty()) return {};
  const Quality quality = measure_kv_loss(model, backend, ids, DType::kI8, reference);
  const double loss = quality.mean_divergence();
  const std::string figures = fmt::format(
      "an int8 KV cache moves the model's next tokens by {:.3g} nats of divergence from {} on "
      "average over {} tokens (the likeliest stays the same for {:.1f} %)",
      loss, dtype_name(reference), quality.tokens, 100 * quality.agreement());
  if (loss <= kMostKvLoss) {  // and not where it is NaN
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    log_debug("{}; measured in {:.2f} s", figures, took.count());
    return {};
  }
  if (!force) {
    return make_error(Code::kUnsupported,
                      "{}, and up to {} is served: use --kv-cache-dtype auto, or --force to serve it so",
                      figures, kMostKvLoss);
  }
  log_warning("{}, above the limit of {}: served because of --force", figures, kMostKvLoss);
  return {};
}

}  // namespace whippet
