// /v1/completions: one prompt or many, as text or as token ids.
#include <fmt/format.h>

#include <utility>

#include "openai/exchange_impl.h"
#include "openai/field_table.h"
#include "openai/request_fields.h"
#include "whippet/whippet.h"

namespace whippet::openai {
namespace {

constexpr int32_t kUsualTokens = 16;  // of an answer whose request sets no max_tokens
constexpr size_t kMostPrompts = 2048;
constexpr size_t kMostAnswers = 8192;  // prompts times n

struct TextPrompt {
  std::string text;
  bool is_text = false;
  std::vector<int32_t> ids;
};

Refusal read_prompt(const Context& context, const Json& value, const std::string& where, TextPrompt& prompt) {
  if (value.is_array()) return read_token_ids(context, value, where, prompt.ids);
  if (!value.is_string()) return wrong_type(where, "a text or an array of token ids", value);
  prompt.text = value.get<std::string>();
  prompt.is_text = true;
  return std::nullopt;
}

// A text, an array of texts, of token ids, or of arrays of token ids.
Refusal read_prompts(const Context& context, const Json& body, std::vector<TextPrompt>& prompts) {
  const Json* value = field(body, "prompt");
  if (value == nullptr) {
    const bool chat = field(body, "messages") != nullptr;
    return missing("prompt",
                   chat ? "prompt is missing: \"messages\" go to /v1/chat/completions" : "prompt is missing");
  }
  const bool many = value->is_array() && !value->empty() && !value->front().is_number();
  if (!many) return read_prompt(context, *value, "prompt", prompts.emplace_back());
  if (value->size() > kMostPrompts)
    return wrong_value(
        "prompt", fmt::format("prompt has {} prompts, at most {} are allowed", value->size(), kMostPrompts));
  for (size_t i = 0; i < value->size(); ++i)
    if (Refusal refusal =
            read_prompt(context, (*value)[i], fmt::format("prompt[{}]", i), prompts.emplace_back()))
      return refusal;
  return std::nullopt;
}

Refusal add_prompts(std::vector<TextPrompt> prompts, bool add_special, Exchange::Impl& exchange) {
  const Context& context = exchange.context;
  const RequestFields& fields = exchange.fields;
  for (TextPrompt& prompt : prompts) {
    SamplingParams params = fields.params;
    if (fields.echo && params.logprobs && !params.prompt_logprobs) params.prompt_logprobs = params.logprobs;
    if (prompt.is_text) prompt.ids = context.encode(prompt.text, true, add_special);
    if (Refusal refusal = fit_prompt(context, fields, kUsualTokens, "prompt", prompt.ids, params))
      return refusal;
    std::string echo;
    if (fields.echo)
      echo = prompt.is_text && !fields.truncate ? std::move(prompt.text)
                                                : context.decode(prompt.ids, params.skip_special_tokens);
    exchange.add_prompt(std::move(prompt.ids), std::move(echo), std::move(params));
  }
  return std::nullopt;
}

Outcome<std::unique_ptr<Exchange>> read_completion(const Context& context, const Json& body, std::string id) {
  RequestFields fields;
  bool prompt_only = false;
  std::vector<TextPrompt> prompts;
  if (Refusal refusal = read_request_fields(context, body, kCompletion, fields)) return std::move(*refusal);
  if (Refusal refusal = read_completion_lengths(body, fields.params, prompt_only)) return std::move(*refusal);
  if (Refusal refusal = check_ranges(context, fields, kCompletion)) return std::move(*refusal);
  if (Refusal refusal = read_prompts(context, body, prompts)) return std::move(*refusal);
  if (prompts.size() * static_cast<size_t>(fields.params.n) > kMostAnswers)
    return wrong_value("n", fmt::format("{} prompts and n {} make {} answers, at most {} are allowed",
                                        prompts.size(), fields.params.n,
                                        prompts.size() * static_cast<size_t>(fields.params.n), kMostAnswers));
  auto exchange = std::make_unique<Exchange::Impl>(context, kCompletion, std::move(id), std::move(fields));
  exchange->prompt_only = prompt_only;
  exchange->has_logprobs = exchange->fields.params.logprobs.has_value();
  try {
    const bool add_special = flag(body, "add_special_tokens", true);
    if (Refusal refusal = add_prompts(std::move(prompts), add_special, *exchange)) return std::move(*refusal);
  } catch (const Failure& failure) {
    return refused(make_error(Code::kInvalidArgument, "{}", failure.what()), "prompt");
  }
  return std::make_unique<Exchange>(std::move(exchange));
}

}  // namespace

Outcome<std::unique_ptr<Exchange>> parse_completion(const Context& context, std::string_view body,
                                                    std::string id) {
  const Outcome<Json> read = read_body(body);
  if (const auto* error = std::get_if<ApiError>(&read)) return *error;
  return read_completion(context, std::get<0>(read), std::move(id));
}

}  // namespace whippet::openai
