// The fields that /v1/chat/completions and /v1/completions spell each in its own way.
#include <fmt/format.h>

#include "api/sampling_fields.h"
#include "openai/request_fields.h"

namespace whippet::openai {
namespace {

Refusal read_into(const Json& body, const char* name, const char* as, SamplingParams& params) {
  const Json* value = field(body, name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) return wrong_type(name, "a whole number", *value);
  if (set_sampling_field(params, as, nlohmann::json(*value)).ok()) return std::nullopt;
  return wrong_value(name, fmt::format("{} is {}, which is out of range", name, shown(*value)));
}

}  // namespace

Refusal read_token_ids(const Context& context, const Json& list, const std::string& where,
                       std::vector<int32_t>& ids) {
  ids.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& id = list[i];
    if (!id.is_number_integer()) return wrong_type(fmt::format("{}[{}]", where, i), "a token id", id);
    if (!(id >= 0 && id < context.vocab_size))
      return wrong_value(fmt::format("{}[{}]", where, i),
                         fmt::format("{}[{}]: token id {} is outside the vocabulary (0 to {})", where, i,
                                     shown(id), context.vocab_size - 1));
    ids.push_back(id.get<int32_t>());
  }
  return std::nullopt;
}

Refusal read_chat_lengths(const Json& body, SamplingParams& params) {
  const Json* both[] = {field(body, "max_tokens"), field(body, "max_completion_tokens")};
  if (both[0] != nullptr && both[1] != nullptr && *both[0] != *both[1])
    return wrong_value(
        "max_completion_tokens",
        fmt::format("max_completion_tokens is {} and max_tokens is {}: they mean the same, send one",
                    shown(*both[1]), shown(*both[0])));
  if (Refusal refusal = read_into(body, "max_completion_tokens", "max_tokens", params)) return refusal;
  if (both[1] != nullptr && params.max_tokens < 1)
    return wrong_value("max_completion_tokens",
                       fmt::format("max_completion_tokens is {}, but must be 1 or more", shown(*both[1])));
  return std::nullopt;
}

Refusal read_chat_logprobs(const Json& body, SamplingParams& params) {
  const Json* wanted = field(body, "logprobs");
  if (wanted != nullptr && !wanted->is_boolean())
    return wrong_type("logprobs", "true or false (how many is \"top_logprobs\")", *wanted);
  const bool asked = wanted != nullptr && wanted->get<bool>();
  params.logprobs.reset();
  const Json* top = field(body, "top_logprobs");
  if (top != nullptr && !asked && *top != 0)
    return wrong_value("top_logprobs", "top_logprobs: only with \"logprobs\": true");
  if (asked) params.logprobs = 0;
  return asked ? read_into(body, "top_logprobs", "logprobs", params) : std::nullopt;
}

Refusal read_completion_lengths(const Json& body, SamplingParams& params, bool& prompt_only) {
  params.logprobs.reset();
  if (const Json* logprobs = field(body, "logprobs"); logprobs != nullptr && logprobs->is_boolean())
    return wrong_type("logprobs", "a whole number: how many of the likeliest tokens", *logprobs);
  if (Refusal refusal = read_into(body, "logprobs", "logprobs", params)) return refusal;
  if (Refusal refusal = read_into(body, "max_tokens", "max_tokens", params)) return refusal;
  prompt_only = params.max_tokens == 0 && (flag(body, "echo", false) || params.prompt_logprobs);
  if (prompt_only) params.max_tokens = 1;
  return std::nullopt;
}

}  // namespace whippet::openai
