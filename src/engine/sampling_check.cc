#include "engine/sampling_check.h"

#include <cmath>
#include <string_view>
#include <vector>

#include "engine/limits.h"

namespace whippet {
namespace {

constexpr int32_t kMaxAnswers = 128;
constexpr size_t kMaxStops = 64;
constexpr size_t kMaxStopBytes = 1024;
constexpr size_t kMaxIds = 1024;  // stop_token_ids and logit_bias: each costs work at every draw

template <class T>
Status refuse(std::string_view field, const T& value, std::string_view allowed) {
  return make_error(Code::kInvalidArgument, "{} is {}, but must be {}", field, value, allowed);
}

Status check_ids(std::string_view field, std::span<const int32_t> ids, size_t most, int32_t vocab_used) {
  if (ids.size() > most) {
    return make_error(Code::kInvalidArgument, "{} has {} entries, at most {} are allowed", field, ids.size(),
                      most);
  }
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_used) {
      return make_error(Code::kInvalidArgument, "{} has the id {}, which is outside the vocabulary (0 to {})",
                        field, id, vocab_used - 1);
    }
  }
  return {};
}

// Well-formed UTF-8 (RFC 3629).
bool valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t length = first < 0x80   ? 1
                          : first < 0xc2 ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      unsigned low = 0x80, high = 0xbf;
      if (k == 1 && first == 0xe0) low = 0xa0;
      if (k == 1 && first == 0xed) high = 0x9f;
      if (k == 1 && first == 0xf0) low = 0x90;
      if (k == 1 && first == 0xf4) high = 0x8f;
      if (byte < low || byte > high) return false;
    }
    i += length;
  }
  return true;
}

Status check_stops(const SamplingParams& p, bool can_decode) {
  if (p.stop.size() > kMaxStops) {
    return make_error(Code::kInvalidArgument, "stop has {} strings, at most {} are allowed", p.stop.size(),
                      kMaxStops);
  }
  for (const std::string& stop : p.stop) {
    if (stop.empty()) return make_error(Code::kInvalidArgument, "stop has an empty string");
    if (stop.size() > kMaxStopBytes) {
      return make_error(Code::kInvalidArgument, "stop has a string of {} bytes, at most {} are allowed",
                        stop.size(), kMaxStopBytes);
    }
    if (!valid_utf8(stop)) return make_error(Code::kInvalidArgument, "stop has a string that is not UTF-8");
  }
  if (!p.stop.empty() && !can_decode) {
    return make_error(Code::kUnsupported,
                      "stop needs a tokenizer, and this model has none: use stop_token_ids");
  }
  return {};
}

// The comparisons are written so that NaN fails each of them.
Status check_numbers(const SamplingParams& p) {
  if (p.n < 1 || p.n > kMaxAnswers) return refuse("n", p.n, "between 1 and 128");
  if (!(p.temperature >= 0 && std::isfinite(p.temperature)))
    return refuse("temperature", p.temperature, "0 (greedy) or more");
  if (!(p.top_p > 0 && p.top_p <= 1)) return refuse("top_p", p.top_p, "more than 0 and at most 1");
  if (p.top_k < -1) return refuse("top_k", p.top_k, "-1 or 0 (off), or 1 or more");
  if (!(p.min_p >= 0 && p.min_p <= 1)) return refuse("min_p", p.min_p, "between 0 and 1");
  if (!(p.repetition_penalty > 0 && std::isfinite(p.repetition_penalty)))
    return refuse("repetition_penalty", p.repetition_penalty, "more than 0");
  if (!(p.presence_penalty >= -2 && p.presence_penalty <= 2))
    return refuse("presence_penalty", p.presence_penalty, "between -2 and 2");
  if (!(p.frequency_penalty >= -2 && p.frequency_penalty <= 2))
    return refuse("frequency_penalty", p.frequency_penalty, "between -2 and 2");
  if (p.max_tokens && *p.max_tokens < 1) return refuse("max_tokens", *p.max_tokens, "1 or more");
  if (p.min_tokens < 0) return refuse("min_tokens", p.min_tokens, "0 or more");
  if (p.max_tokens && p.min_tokens > *p.max_tokens) {
    return make_error(Code::kInvalidArgument, "min_tokens is {}, but max_tokens is {}", p.min_tokens,
                      *p.max_tokens);
  }
  if (p.logprobs && (*p.logprobs < 0 || *p.logprobs > kMaxLogprobs))
    return refuse("logprobs", *p.logprobs, "between 0 and 20");
  if (p.prompt_logprobs && (*p.prompt_logprobs < 0 || *p.prompt_logprobs > kMaxLogprobs))
    return refuse("prompt_logprobs", *p.prompt_logprobs, "between 0 and 20");
  return {};
}

}  // namespace

Status check_sampling(const SamplingParams& p, int32_t vocab_used, bool can_decode) {
  WH_TRY(check_numbers(p));
  WH_TRY(check_stops(p, can_decode));
  WH_TRY(check_ids("stop_token_ids", p.stop_token_ids, kMaxIds, vocab_used));
  const auto vocab = static_cast<size_t>(vocab_used);
  WH_TRY(check_ids("banned_token_ids", p.banned_token_ids, vocab, vocab_used));
  if (p.allowed_token_ids) {
    WH_TRY(check_ids("allowed_token_ids", *p.allowed_token_ids, vocab, vocab_used));
    if (p.allowed_token_ids->empty()) {
      return make_error(Code::kInvalidArgument, "allowed_token_ids is empty: no token could ever be drawn");
    }
  }
  if (p.logit_bias.size() > kMaxIds) {
    return make_error(Code::kInvalidArgument, "logit_bias has {} entries, at most {} are allowed",
                      p.logit_bias.size(), kMaxIds);
  }
  for (const auto& [id, value] : p.logit_bias) {
    WH_TRY(check_ids("logit_bias", std::span(&id, 1), 1, vocab_used));
    if (!(value >= -100 && value <= 100)) {
      return make_error(Code::kInvalidArgument,
                        "logit_bias of token {} is {}, but must be between -100 and 100", id, value);
    }
  }
  return {};
}

Status check_lengths(std::span<const int32_t> prompt, const SamplingParams& params, int32_t max_model_len,
                     int32_t vocab_used) {
  if (prompt.empty())
    return make_error(Code::kInvalidArgument, "prompt is empty: it must have at least one token");
  const size_t limit = static_cast<size_t>(max_model_len);
  const size_t requested = static_cast<size_t>(params.max_tokens.value_or(1));
  if (prompt.size() + requested > limit) {
    const std::string asked =
        params.max_tokens ? fmt::format("max_tokens {}", requested) : "at least 1 for the answer";
    return make_error(
        Code::kInvalidArgument,
        "prompt of {} tokens and {} make {}, more than the limit of {} (max_model_len): shorten the "
        "prompt{}",
        prompt.size(), asked, prompt.size() + requested, limit,
        params.max_tokens && prompt.size() < limit ? " or ask for fewer tokens" : "");
  }
  if (params.min_tokens > max_model_len - static_cast<int32_t>(prompt.size())) {
    return make_error(
        Code::kInvalidArgument,
        "min_tokens is {}, but a prompt of {} tokens leaves {} of the limit of {} (max_model_len)",
        params.min_tokens, prompt.size(), limit - prompt.size(), limit);
  }
  return check_ids("prompt", prompt, prompt.size(), vocab_used);
}

}  // namespace whippet
