#include "openai/request_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "api/sampling_fields.h"
#include "openai/structured_fields.h"

namespace whippet::openai {
namespace {

constexpr int64_t kMostPriority = 1000;
constexpr double kMostSeconds = 1e6;

// Every sampling field that the body has, but for those which a route spells in its own way.
Refusal read_sampling(const Json& body, Route route, SamplingParams& params) {
  for (const auto& [name, value] : body.items()) {
    if (value.is_null() || name == "logprobs" || !is_sampling_field(name)) continue;
    if (name == "max_tokens" && route == kCompletion) continue;
    const Status status = set_sampling_field(params, name, nlohmann::json(value));
    if (status.ok()) continue;
    ApiError error = refused(status.error(), name);
    error.param = name;
    error.code = "invalid_type";
    return error;
  }
  return std::nullopt;
}

Refusal read_stream(const Json& body, RequestFields& fields) {
  fields.stream = flag(body, "stream", false);
  const Json* options = field(body, "stream_options");
  if (options == nullptr) return std::nullopt;
  if (!fields.stream && !options->empty())
    return wrong_value("stream_options",
                       "stream_options: only a stream has them, and \"stream\" is not true");
  for (const auto& [name, value] : options->items()) {
    const std::string param = "stream_options." + printable(name);
    if (name != "include_usage" && name != "continuous_usage_stats" && name != "include_obfuscation") {
      add_ignored(fields.ignored, param);
    } else if (!value.is_null() && !value.is_boolean()) {
      return wrong_type(param, "true or false", value);
    }
  }
  fields.continuous_usage = flag(*options, "continuous_usage_stats", false);
  fields.include_usage = flag(*options, "include_usage", false) || fields.continuous_usage;
  return std::nullopt;
}

Refusal read_limits(const Context& context, const Json& body, RequestFields& fields) {
  if (const Json* priority = field(body, "priority")) {
    const bool fits = *priority >= -kMostPriority && *priority <= kMostPriority;
    if (!fits)
      return wrong_value("priority", fmt::format("priority is {}, but must be between -{} and {}",
                                                 shown(*priority), kMostPriority, kMostPriority));
    fields.priority = priority->get<int32_t>();
  }
  fields.timeout_s = context.max_timeout_s;
  if (const Json* timeout = field(body, "timeout")) {
    const double asked = timeout->get<double>();
    const double most = context.max_timeout_s > 0 ? context.max_timeout_s : kMostSeconds;
    if (!(asked > 0 && asked <= most))
      return wrong_value("timeout",
                         fmt::format("timeout is {} seconds, but must be more than 0{}", shown(*timeout),
                                     asked > 0 ? fmt::format(" and at most {}", most) : ""));
    fields.timeout_s = asked;
  }
  if (const Json* truncate = field(body, "truncate_prompt_tokens")) {
    if (!(*truncate == -1 || (*truncate >= 1 && *truncate <= std::numeric_limits<int32_t>::max())))
      return wrong_value(
          "truncate_prompt_tokens",
          fmt::format("truncate_prompt_tokens is {}, but must be -1, or 1 or more", shown(*truncate)));
    fields.truncate = truncate->get<int32_t>();
  }
  return std::nullopt;
}

// Fields of which one value can be honoured, the usual one.
Refusal check_fixed(const Json& body, const SamplingParams& params) {
  if (const Json* best_of = field(body, "best_of"))
    if (*best_of != params.n)
      return unsupported("best_of",
                         fmt::format("best_of is {}: answers are not ranked, all \"n\" ({}) are returned",
                                     shown(*best_of), params.n));
  if (const Json* modalities = field(body, "modalities"))
    for (const Json& modality : *modalities)
      if (modality != "text")
        return unsupported(
            "modalities",
            fmt::format("modalities has {}, but this server takes and gives text only", shown(modality)));
  return std::nullopt;
}

}  // namespace

Refusal read_model(const Context& context, const Json& body, std::string& model) {
  model = text(body, "model");
  if (model.empty()) model = context.served_names.front();
  const auto& served = context.served_names;
  if (std::find(served.begin(), served.end(), model) != served.end()) return std::nullopt;
  ApiError error = http_error(404,
                              fmt::format("the model '{}' does not exist here; this server has {}",
                                          printable(model), fmt::join(served, ", ")),
                              "model_not_found");
  error.param = "model";
  return error;
}

Refusal read_request_fields(const Context& context, const Json& body, Route route, RequestFields& fields) {
  if (Refusal refusal = check_fields(body, route, context.strict_fields, fields.ignored)) return refusal;
  if (Refusal refusal = read_model(context, body, fields.model)) return refusal;
  fields.params = context.default_sampling;
  fields.params.max_tokens.reset();  // what a request does not ask for is no reason to refuse a long prompt
  if (Refusal refusal = read_sampling(body, route, fields.params)) return refusal;
  if (Refusal refusal = read_stream(body, fields)) return refusal;
  if (Refusal refusal = read_limits(context, body, fields)) return refusal;
  if (Refusal refusal = check_fixed(body, fields.params)) return refusal;
  if (Refusal refusal = read_structured_outputs(body, fields.params, fields.structured_param)) return refusal;
  fields.echo = flag(body, "echo", false);
  fields.tokens_as_ids = flag(body, "return_tokens_as_token_ids", false);
  fields.return_token_ids = flag(body, "return_token_ids", false);
  fields.cache_salt = text(body, "cache_salt");
  if (fields.stream && field(body, "prompt_logprobs") != nullptr)
    return unsupported("prompt_logprobs",
                       "prompt_logprobs: a stream does not carry them; send \"stream\": false");
  return std::nullopt;
}

Refusal check_ranges(const Context& context, const RequestFields& fields, Route route) {
  const Status status = check_sampling_fields(fields.params, context.vocab_size);
  if (status.ok()) {
    const auto& structured = fields.params.structured_outputs;
    return structured ? check_structured_outputs(context, *structured, fields.structured_param)
                      : std::nullopt;
  }
  ApiError error = refused(status.error(), "");
  if (route == kChat && error.param == "logprobs") {
    error.param = "top_logprobs";
    error.message = "top_" + error.message;
  }
  return error;
}

Refusal fit_prompt(const Context& context, const RequestFields& fields, std::optional<int32_t> otherwise,
                   std::string_view param, std::vector<int32_t>& prompt, SamplingParams& params) {
  const int64_t limit = context.max_model_len;
  if (fields.truncate) {
    const int64_t keep =
        *fields.truncate > 0 ? *fields.truncate : std::max<int64_t>(limit - params.max_tokens.value_or(1), 1);
    if (static_cast<int64_t>(prompt.size()) > keep) prompt.erase(prompt.begin(), prompt.end() - keep);
  }
  if (prompt.empty())
    return wrong_value(std::string(param), fmt::format("{}: there is no token in it", param));
  const auto size = static_cast<int64_t>(prompt.size());
  const int64_t asked = std::max<int64_t>(params.max_tokens.value_or(1), params.min_tokens);
  if (size + asked > limit) {
    ApiError error =
        wrong_value(std::string(param),
                    fmt::format("This model's maximum context length is {} tokens, but the request takes {}: "
                                "{} in the prompt and "
                                "{} for the answer{}. Shorten the prompt{}.",
                                limit, size + asked, size, asked, params.max_tokens ? "" : " at least",
                                size < limit && params.max_tokens ? " or ask for fewer tokens" : ""));
    error.code = "context_length_exceeded";
    return error;
  }
  if (!params.max_tokens) {
    const int64_t most = std::max<int64_t>(otherwise.value_or(limit), params.min_tokens);
    params.max_tokens = static_cast<int32_t>(std::min(limit - size, most));
  }
  return std::nullopt;
}

}  // namespace whippet::openai
