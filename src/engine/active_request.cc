#include "engine/active_request.h"

#include <algorithm>
#include <cmath>

#include "engine/hash.h"
#include "engine/sampling_check.h"

namespace whippet {
namespace {

constexpr double kSecondsPerPriority = 10;
constexpr double kMaxHeadStart = 3600;  // so that no priority can starve another for ever
constexpr int32_t kReservedOutput = 4096;

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
}

// Requests of one salt, with equal positional frequencies, share blocks; without prefix caching only the
// answers of one request do.
std::string salt_of(const ActiveRequest& request, const std::vector<float>& frequencies,
                    const RequestRules& rules) {
  std::string salt = rules.limits.enable_prefix_caching ? "salt:" + request.asked.cache_salt
                                                        : fmt::format("request:{}", request.id);
  if (frequencies != rules.usual_frequencies) {
    salt.push_back('\0');
    salt.append(reinterpret_cast<const char*>(frequencies.data()), frequencies.size() * sizeof(float));
  }
  return salt;
}

std::unique_ptr<Sequence> make_sequence(ActiveRequest& request, int32_t index, std::vector<float> frequencies,
                                        std::span<const int32_t> banned_early, const RequestRules& rules) {
  const SamplingParams& params = request.asked.params;
  const std::vector<int32_t>& prompt = request.asked.prompt;
  auto sequence = std::make_unique<Sequence>();
  sequence->request = &request;
  sequence->request_id = request.id;
  sequence->index = index;
  sequence->state = index == 0 ? SequenceState::kWaiting : SequenceState::kHeld;
  sequence->urgency = std::chrono::duration<double>(request.submitted.time_since_epoch()).count() +
                      std::clamp(request.asked.priority * kSecondsPerPriority, -kMaxHeadStart, kMaxHeadStart);
  sequence->num_prompt = static_cast<int32_t>(prompt.size());
  sequence->max_length =
      params.max_tokens ? sequence->num_prompt + *params.max_tokens : rules.limits.max_model_len;
  sequence->tokens.reserve(
      static_cast<size_t>(std::min(sequence->max_length, sequence->num_prompt + kReservedOutput)));
  sequence->tokens = prompt;
  sequence->frequencies = std::move(frequencies);
  sequence->sampler = SamplerState(params, params.seed.value_or(hash_mix(rules.seed, request.id)), index,
                                   prompt, banned_early, sequence->max_length - sequence->num_prompt,
                                   rules.facts.vocab_used, static_cast<bool>(request.asked.token_mask));
  if (!params.stop.empty()) sequence->stops.emplace(*rules.tokenizer, params);
  return sequence;
}

}  // namespace

Result<std::unique_ptr<ActiveRequest>> make_active_request(CoreRequest asked, uint64_t id,
                                                           const RequestRules& rules, Clock::time_point now) {
  WH_TRY(check_sampling(asked.params, rules.facts.vocab_used, rules.tokenizer != nullptr));
  WH_TRY(check_lengths(asked.prompt, asked.params, rules.limits.max_model_len, rules.facts.vocab_used));
  if (!(asked.timeout_s >= 0 && std::isfinite(asked.timeout_s))) {
    return make_error(Code::kInvalidArgument, "timeout is {} seconds, but must be 0 (none) or more",
                      asked.timeout_s);
  }
  auto request = std::make_unique<ActiveRequest>();
  request->id = id;
  request->asked = std::move(asked);
  request->submitted = now;
  if (request->asked.timeout_s > 0) {
    request->deadline = request->submitted + seconds(std::min(request->asked.timeout_s, 1e9));
  }
  const SamplingParams& params = request->asked.params;
  request->stop_ids = params.stop_token_ids;
  std::ranges::sort(request->stop_ids);
  std::vector<int32_t> banned_early = request->stop_ids;
  if (!params.ignore_eos) {
    banned_early.insert(banned_early.end(), rules.facts.eos_ids.begin(), rules.facts.eos_ids.end());
  }
  const auto prompt_size = static_cast<int32_t>(request->asked.prompt.size());
  const std::vector<float> frequencies =
      rules.frequencies(params.max_tokens ? prompt_size + *params.max_tokens : rules.limits.max_model_len);
  request->salt = salt_of(*request, frequencies, rules);
  for (int32_t index = 0; index < params.n; ++index) {
    request->sequences.push_back(make_sequence(*request, index, frequencies, banned_early, rules));
  }
  request->num_unfinished = params.n;
  return request;
}

}  // namespace whippet
